// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/resident.cpp: element-wise kernels and measures on tiles of a matrix on a device.
#include "linalg/resident.h"

#include "linalg/kernels/codelets.h"
#include "linalg/tiles.h"
#include "linalg/view.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

namespace quadriga::linalg {
namespace {

using kernels::Part;
using kernels::TileRegion;

/// Large enough to keep a device busy, small enough for a kernel's 32 bits.
constexpr std::int64_t large = 8192;

constexpr Part turned(Part part) noexcept {
  switch (part) {
    case Part::lower:
      return Part::upper;
    case Part::upper:
      return Part::lower;
    case Part::strict_lower:
      return Part::strict_upper;
    case Part::strict_upper:
      return Part::strict_lower;
    case Part::all:
      break;
  }
  return Part::all;
}

/// Whether a tile whose first element is (row, col) has some of the part.
bool meets(Part part, const Tiling& rows, const Tiling& cols, std::int64_t i, std::int64_t j) {
  const std::int64_t row = rows.first(i);
  const std::int64_t col = cols.first(j);
  if (part == Part::lower || part == Part::strict_lower) return row + rows.length(i) > col;
  if (part == Part::upper || part == Part::strict_upper) return col + cols.length(j) > row;
  return true;
}

/// Calls visit(tile, region) for the tiles of a view that have some of a part of it.
template <class Visit>
void for_each_tile(Run& run, const MatrixView& view, Part part, std::int64_t tile, Visit&& visit) {
  const bool by_rows = layout_of(view) == ViewKind::rows;
  const MatrixView stored = by_rows ? view.transposed() : view;
  if (layout_of(stored) != ViewKind::columns) gathered(stored);  // refuses it
  const Part wanted = by_rows ? turned(part) : part;
  HomeTiles tiles(run, stored, {stored.rows, tile}, {stored.cols, tile});
  for (std::int64_t j = 0; j < tiles.cols().count(); ++j)
    for (std::int64_t i = 0; i < tiles.rows().count(); ++i)
      if (meets(wanted, tiles.rows(), tiles.cols(), i, j))
        visit(tiles.update(i, j, {}),
              TileRegion{wanted, tiles.rows().first(i) - tiles.cols().first(j)});
}

SubmitOptions there(const MatrixView& view) {
  SubmitOptions where;
  where.owner = view.device;
  return where;
}

void scale_there(Engine& engine, Coefficient factor, const MatrixView& c, Part part) {
  if (factor == Coefficient(1) || empty(c)) return;
  const Options options;
  Run run(engine, options, 1);
  if (factor == Coefficient(0)) {
    submit_clear(run, c, part, large);
  } else {
    for_each_tile(run, c, part, large, [&](Data tile, const TileRegion& region) {
      run.submit(kernels::scale_codelet(c.dtype), {{tile, Access::update}},
                 kernels::ScaleParams{{factor.real, factor.imag}, region}, there(c));
    });
  }
  run.wait();
}

}  // namespace

DeviceId common_device(const Engine& engine,
                       std::initializer_list<const Matrix*> matrices) noexcept {
  const std::vector<Device>& devices = engine.machine().devices;
  DeviceId device = no_device;
  for (const Matrix* const each : matrices) {
    if (each->source() || !on_device(each->view())) return no_device;
    if (device != no_device && device != each->view().device) return no_device;
    device = each->view().device;
  }
  const bool is_own = device < devices.size() && devices[device].space != host_space;
  return is_own ? device : no_device;
}

void submit_clear(Run& run, const MatrixView& view, Part part, std::int64_t tile) {
  for_each_tile(run, view, part, tile, [&](Data data, const TileRegion& region) {
    run.submit(kernels::set_codelet(view.dtype), {{data, Access::update}},
               kernels::SetParams{{}, {}, region}, there(view));
  });
}

void scale_anywhere(Engine& engine, Coefficient factor, const MatrixView& c) {
  if (on_device(c)) return scale_there(engine, factor, c, Part::all);
  scale(factor, c);
}

void scale_triangle_anywhere(Engine& engine, Coefficient factor, const MatrixView& c, Uplo uplo) {
  if (on_device(c))
    return scale_there(engine, factor, c, uplo == Uplo::lower ? Part::lower : Part::upper);
  scale_triangle(factor, c, uplo);
}

bool finite_anywhere(Engine& engine, const MatrixView& view) {
  if (!on_device(view)) return finite(view);
  if (empty(view)) return true;
  const Options options;
  std::deque<double> largest;  // Its addresses stay, and it outlives the tasks that write it.
  Run run(engine, options, 1);
  for_each_tile(run, view, Part::all, large, [&](Data tile, const TileRegion&) {
    const Data result = run.add(&largest.emplace_back(), 1, 1, 1, DType::float64);
    run.submit(kernels::measure_codelet(view.dtype), {{tile}, {result, Access::write}},
               kernels::MeasureParams{}, there(view));
  });
  run.wait();
  return std::ranges::all_of(largest, [](double value) { return std::isfinite(value); });
}

std::int64_t zero_on_diagonal(Engine& engine, const MatrixView& a) {
  if (empty(a)) return -1;
  const Options options;
  std::vector<double> sizes(static_cast<std::size_t>(a.cols));  // outlives the task that writes it
  Run run(engine, options, 1);
  // The diagonal as a row whose elements lie a column and a row apart.
  MatrixView diagonal = a;
  diagonal.rows = 1;
  diagonal.col_stride = a.row_stride + a.col_stride;
  diagonal.row_stride = 1;
  const Data result = run.add(sizes.data(), a.cols, 1, a.cols, DType::float64);
  run.submit(kernels::measure_codelet(a.dtype), {{run.add(diagonal)}, {result, Access::write}},
             kernels::MeasureParams{kernels::Measure::column_sums, {}}, there(a));
  run.wait();
  const auto zero = std::ranges::find(sizes, 0.0);
  return zero == sizes.end() ? -1 : zero - sizes.begin();
}

}  // namespace quadriga::linalg
