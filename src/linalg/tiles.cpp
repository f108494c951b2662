// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tiles.cpp: registering tiles, and slots with their filling and emptying.
#include "linalg/tiles.h"

#include "device/kinds.h"
#include "linalg/view.h"

#include <fmt/format.h>

namespace quadriga::linalg {

HomeTiles::HomeTiles(Run& run, const MatrixView& view, Tiling rows, Tiling cols)
    : Tiles(std::move(rows), std::move(cols), view.dtype), run_(run), view_(view) {
  tiles_.resize(static_cast<std::size_t>(this->rows().count() * this->cols().count()));
}

Data HomeTiles::tile(std::int64_t i, std::int64_t j) {
  Data& data = tiles_[static_cast<std::size_t>(i + j * rows().count())];
  if (!data)
    data =
        run_.add(part(view_, rows().first(i), cols().first(j), rows().length(i), cols().length(j)));
  return data;
}

void HomeTiles::final(std::int64_t i, std::int64_t j) { run_.engine().final(tile(i, j)); }

SlotTiles::SlotTiles(Run& run, std::shared_ptr<const Origin> origin, Tiling rows, Tiling cols,
                     DType dtype, std::int64_t slots)
    : Tiles(std::move(rows), std::move(cols), dtype),
      run_(run),
      origin_(std::move(origin)),
      most_(std::max<std::int64_t>(slots, 4)) {
  run_.keep(origin_);
}

Data SlotTiles::order_of(Place place) {
  Data& data = orders_[place];
  if (!data) {
    // A byte of its own for each: its address is all that matters.
    const auto home = std::make_shared<std::byte>();
    run_.keep(home);
    data = run_.add(home.get(), 1, 1, 1, DType::bytes);
  }
  return data;
}

void SlotTiles::fill(Slot& slot, SubmitOptions where) {
  const auto [i, j] = slot.place;
  const MoveParams params{origin_.get(), rows().first(i), cols().first(j)};
  if (origin_->source) {
    submit_compute(run_, params, slot.data, where);
    return;
  }
  where.owner = where.device = no_device;  // it runs on the host
  run_.submit(gather_codelet(), {{slot.data, Access::write}, {order_of(slot.place)}}, params,
              where);
}

void SlotTiles::empty(Slot& slot) {
  if (!slot.changed) return;
  slot.changed = false;
  const auto [i, j] = slot.place;
  const MoveParams params{origin_.get(), rows().first(i), cols().first(j)};
  run_.submit(scatter_codelet(), {{slot.data}, {order_of(slot.place), Access::update}}, params);
}

SlotTiles::Slot& SlotTiles::take(Place place) {
  const std::pair shape{rows().length(place.first), cols().length(place.second)};
  Slots& slots = by_shape_[shape];
  if (static_cast<std::int64_t>(slots.size()) < most_) {
    slots.push_back({run_.add(shape.first, shape.second, dtype())});
  } else {
    slots.splice(slots.end(), slots, slots.begin());
    empty(slots.back());
    found_.erase(slots.back().place);
  }
  slots.back().place = place;
  found_[place] = std::prev(slots.end());
  return slots.back();
}

SlotTiles::Slot& SlotTiles::find(Place place, bool wanted, SubmitOptions where) {
  const auto found = found_.find(place);
  if (found != found_.end()) {
    Slots& slots = by_shape_[{rows().length(place.first), cols().length(place.second)}];
    slots.splice(slots.end(), slots, found->second);
    return *found->second;
  }
  Slot& slot = take(place);
  if (wanted) fill(slot, where);
  return slot;
}

Data SlotTiles::read(std::int64_t i, std::int64_t j, SubmitOptions where) {
  return find({i, j}, true, where).data;
}

Data SlotTiles::update(std::int64_t i, std::int64_t j, SubmitOptions where) {
  Slot& slot = find({i, j}, true, where);
  slot.changed = true;
  return slot.data;
}

Data SlotTiles::write(std::int64_t i, std::int64_t j, SubmitOptions where) {
  Slot& slot = find({i, j}, false, where);
  slot.changed = true;
  return slot.data;
}

void SlotTiles::final(std::int64_t i, std::int64_t j) {
  const auto found = found_.find({i, j});
  if (found != found_.end()) empty(*found->second);
}

void SlotTiles::finish_all() {
  for (auto& [place, slot] : found_) empty(*slot);
}

void finish_all(Tiles& tiles) {
  if (auto* const slots = dynamic_cast<SlotTiles*>(&tiles)) slots->finish_all();
}

Form form_of(Op op, DType dtype) noexcept {
  return {op != Op::none, op == Op::conjugate && is_complex(dtype)};
}

std::int64_t slots_for(const Machine& machine, const Tiling& rows, const Tiling& cols,
                       DType dtype) {
  const auto tile_bytes = static_cast<std::size_t>(rows.tile * cols.tile) * size_of(dtype);
  std::size_t bytes = 0;
  std::int64_t cores = 0;
  for (const Device& device : machine.devices) {
    if (is_accelerator(device.kind)) bytes += device.memory_bytes;
    if (device.kind == DeviceKind::cpu) cores += std::max(1, device.cores);
  }
  const std::int64_t here = rows.count() + cols.count() + 2 * cores;
  const auto there = static_cast<std::int64_t>(bytes / tile_bytes);
  return std::min(rows.count() * cols.count(), std::max(here, there));
}

namespace {

std::unique_ptr<Tiles> slot_tiles(Run& run, std::shared_ptr<const Origin> origin, Tiling rows,
                                  Tiling cols, DType dtype) {
  const std::int64_t slots = slots_for(run.engine().machine(), rows, cols, dtype);
  return std::make_unique<SlotTiles>(run, std::move(origin), std::move(rows), std::move(cols),
                                     dtype, slots);
}

}  // namespace

namespace {

/// What makes `form` of a stored tile.
Op op_for(Form form) noexcept {
  if (!form.transpose) return Op::none;
  return form.conjugate ? Op::conjugate : Op::transpose;
}

/// No kernel conjugates without transposing.
bool kernels_take(Form form, Accepts accepts, DType dtype) noexcept {
  if (!is_complex(dtype)) return true;
  if (!form.transpose) return !form.conjugate;
  return accepts == Accepts::all || (accepts == Accepts::none_or_adjoint) == form.conjugate;
}

}  // namespace

const MatrixView& gathered(const MatrixView& view) {
  if (on_device(view))
    fail(Errc::invalid_argument,
         fmt::format(
             "a matrix on a device is used where it lies, and this one, {} x {} with strides "
             "{} and {}, can't be: make a copy there with contiguous columns",
             view.rows, view.cols, view.row_stride, view.col_stride));
  return view;
}

Input input_tiles(Run& run, const Matrix& a, Form form, Tiling rows, Tiling cols, Accepts accepts) {
  Input input;
  const ViewKind layout = a.source() ? ViewKind::strided : layout_of(a.view());
  // What is stored, in memory or as a source gives it, is A or its transpose.
  const bool by_rows = layout == ViewKind::rows;
  const Form of_stored{form.transpose != by_rows, form.conjugate};
  const bool taken = kernels_take(of_stored, accepts, a.dtype());
  if (taken && (layout != ViewKind::strided || a.source())) {
    input.transposed = of_stored.transpose;
    input.op = op_for(of_stored);
    if (input.transposed) std::swap(rows, cols);
    if (!a.source()) {
      const MatrixView view = by_rows ? a.view().transposed() : a.view();
      input.tiles = std::make_unique<HomeTiles>(run, view, std::move(rows), std::move(cols));
      return input;
    }
  }
  auto origin = std::make_shared<Origin>();
  origin->source = a.source();
  origin->check_finite = run.options().check_finite;
  if (!taken || !a.source()) {
    origin->transposed = a.source() && form.transpose;
    origin->conjugate = form.conjugate;
    if (!a.source()) origin->view = gathered(form.transpose ? a.view().transposed() : a.view());
  }
  input.tiles = slot_tiles(run, std::move(origin), std::move(rows), std::move(cols), a.dtype());
  return input;
}

std::unique_ptr<Tiles> output_tiles(Run& run, const MatrixView& view, Tiling rows, Tiling cols) {
  if (layout_of(view) == ViewKind::columns)
    return std::make_unique<HomeTiles>(run, view, std::move(rows), std::move(cols));
  auto origin = std::make_shared<Origin>();
  origin->view = gathered(view);
  return slot_tiles(run, std::move(origin), std::move(rows), std::move(cols), view.dtype);
}

}  // namespace quadriga::linalg
