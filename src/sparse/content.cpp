// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/content.cpp: a matrix is checked, cut, and stored in parts.
#include "sparse/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "device/kinds.h"
#include "device/recorded_together.h"
#include "engine/engine_access.h"
#include "sparse/hierarchy.h"
#include "sparse/method.h"
#include "sparse/model.h"
#include "sparse/part_data.h"
#include "sparse/partition.h"
#include "sparse/recorded_ahead.h"

namespace quadriga::sparse {
namespace {

/// Vectors of an iteration: p, q, r, x and M's diagonal; and z, d and s where M is several steps.
constexpr std::int64_t vectors = 5;
constexpr std::int64_t vectors_of_steps = 3;

void check(const RowReader& reader, const SolverOptions& options) {
  const CsrView& a = reader.outline();
  require(a.rows == a.cols,
          fmt::format("a matrix of {} x {}; solvers take square ones", a.rows, a.cols));
  require(options.precondition != Precondition::diagonal || options.diagonal || a.rows == 0,
          "a diagonal preconditioner needs its diagonal");
  require(options.degree >= 0,
          fmt::format("a polynomial of degree {}; expected 1 or more", options.degree));
  const int unknowns = options.aggregation.unknowns;
  require(unknowns == 0 || (unknowns > 0 && a.rows % unknowns == 0),
          fmt::format("aggregation: nodes of {} rows in a matrix of {}; expected a divisor",
                      unknowns, a.rows));
  require(options.aggregation.strength >= 0,
          fmt::format("aggregation: a strength of {}; expected 0 or more",
                      options.aggregation.strength));
  require(
      reader.is_whole() || options.precondition != Precondition::aggregation,
      "aggregation needs the whole matrix in memory, and this one is a source of rows; expected "
      "another preconditioner");
  if (options.precondition == Precondition::hierarchy)
    check_levels(options.levels, a.rows, a.dtype);
  require(options.parts >= 0, fmt::format("{} parts; expected 0 or more", options.parts));
}

/// What is stored with the rows: the blocks of M, or of its smoother.
Precondition scaling_of(Precondition precondition, int inverse_rows) {
  if (has_levels(precondition))
    return inverse_rows > 1 ? Precondition::block_jacobi : Precondition::jacobi;
  return precondition == Precondition::chebyshev ? Precondition::jacobi : precondition;
}

constexpr int degree_alone = 4;
constexpr int degree_on_levels = 2;

}  // namespace

SolverContent::SolverContent(Engine& engine, const RowReader& reader, const SolverOptions& given)
    : engine_(engine),
      rows_(reader.outline().rows),
      dtype_(reader.outline().dtype),
      overlap_(given.overlap),
      goes_by_host_(given.route == CopyRoute::host),
      precondition_(given.precondition),
      degree_(given.degree),
      memory_(given.spill) {
  const auto begin = std::chrono::steady_clock::now();
  const CsrView& a = reader.outline();
  check(reader, given);
  chosen_ = choose_format(engine, reader, given.format);
  const SolverOptions options = completed(reader, given);
  const int inverse_rows = inverse_rows_of(a, chosen_, options);
  scaling_ = scaling_of(precondition_, inverse_rows);
  units_ = {block_rows_of(a, chosen_, inverse_rows), chosen_.dense_rows,
            options.exchange == Exchange::whole};
  storage_ = {chosen_.format,    chosen_.dense_rows,
              units_.block_rows, slice_rows_of(engine.machine(), chosen_.format, units_.block_rows),
              inverse_rows,      may_narrow(engine.machine())};
  const std::vector<DeviceId> spread =
      options.fast ? spread_over(a, options) : std::vector<DeviceId>{};
  MethodChoice choice = choose_method(engine.machine(), {rows_, dtype_, chosen_.bytes},
                                      options.method, has_steps(precondition_), spread);
  report_.method = choice.method;
  report_.method_reason = std::move(choice.reason);
  place(a, options);
  plan_parts(reader);
  is_recorded_ = report_.recorded = choose_recorded(options);
  must_record_ = options.recorded.value_or(false);
  store(reader, options);
  const bool is_whole = options.exchange == Exchange::whole;
  report_.models = model_product(engine.machine(), plans_, report_.devices,
                                 is_whole ? Exchange::whole : Exchange::halo, options.route);
  report_.estimates = estimate_products(engine.machine(), plans_, report_.devices, !is_whole);
  const Streaming streaming = model_streaming(engine.machine(), plans_, report_.devices, method());
  report_.streamed_bytes = streaming.bytes;
  report_.streamed_seconds = streaming.seconds;
  if (streaming.bytes > 0) store_heads();
  for (std::size_t part = 0; part < parts(); ++part)
    report_.overlaps.push_back(choose_overlap(part));
  make_levels(a, options);
  if (options.records_ahead) report_.recording_seconds = record_ahead(*this);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  report_.seconds = taken.count();
}

SolverContent::~SolverContent() {
  try {
    idle_.reset();
    codelets_.clear();
    levels_.reset();
    engine_.remove(matrices_, true);
    engine_.remove(heads_, true);
  } catch (...) {
    // An engine that has broken down said so where somebody waited.
  }
}

/// What is left to the solver, where M has levels.
SolverOptions SolverContent::completed(const RowReader& a, const SolverOptions& options) {
  const bool is_cycle = has_levels(precondition_);
  if (degree_ == 0) degree_ = is_cycle ? degree_on_levels : degree_alone;
  if (!is_cycle) return options;
  SolverOptions all = options;
  unknowns_ = options.aggregation.unknowns;
  if (unknowns_ == 0)
    unknowns_ = chosen_.dense_rows > 1 ? chosen_.dense_rows
                                       : choose_format(engine_, a, Format::automatic).dense_rows;
  all.inverse_rows = smoothed_rows(unknowns_);
  return all;
}

std::int64_t SolverContent::row_bytes_of(CgMethod method) const noexcept {
  const std::int64_t count =
      vectors + (has_steps(precondition_) ? vectors_of_steps : 0) + carried_vectors(method);
  return count * static_cast<std::int64_t>(size_of(dtype_));
}

Places SolverContent::places_of(const CsrView& a, const SolverOptions& options,
                                CgMethod method) const {
  const double bytes =
      static_cast<double>(a.elements) * static_cast<double>(size_of(a.dtype) + sizeof(int)) +
      static_cast<double>(a.rows) * static_cast<double>(row_bytes_of(method));
  return choose_places(engine_, options.parts, bytes, !options.recorded);
}

/// The devices that classic iterations would run on, each once.
std::vector<DeviceId> SolverContent::spread_over(const CsrView& a,
                                                 const SolverOptions& options) const {
  std::vector<DeviceId> devices = places_of(a, options, CgMethod::classic).devices;
  std::ranges::sort(devices);
  const auto rest = std::ranges::unique(devices);
  devices.erase(rest.begin(), rest.end());
  return devices;
}

void SolverContent::place(const CsrView& a, const SolverOptions& options) {
  report_.block_rows = units_.block_rows;
  report_.dense_rows = units_.dense_rows;
  const Places places = places_of(a, options, report_.method);
  const std::vector<std::int64_t> first =
      cut_rows(a, report_.block_rows, places.weights, row_bytes_of(report_.method));
  for (std::size_t part = 0; part < places.devices.size(); ++part) {
    if (first[part] == first[part + 1]) continue;
    report_.first_rows.push_back(first[part]);
    report_.devices.push_back(places.devices[part]);
  }
  report_.first_rows.push_back(a.rows);
}

/// What each part needs of others, and who sends it.
void SolverContent::plan_parts(const RowReader& reader) {
  const std::vector<std::int64_t>& first = report_.first_rows;
  const std::size_t count = report_.devices.size();
  halos_.resize(count);
  reader.each(first, [&](std::size_t part, const CsrView& a) {
    halos_[part] = find_halo(a, first[part], first[part + 1], units_, on_host(engine_));
  });
  transfers_ = plan_exchange(halos_, first);
  plans_.resize(count);
  send_rows_.resize(count);
  for (const HaloTransfer& each : transfers_) {
    const auto from = static_cast<std::size_t>(each.from);
    const auto to = static_cast<std::size_t>(each.to);
    const auto begin = halos_[to].columns.begin() + each.first;
    send_rows_[from].insert(send_rows_[from].end(), begin, begin + each.count);
    plans_[from].sends.push_back(each);
    plans_[to].arrivals.push_back(each);
  }
}

PartRows SolverContent::rows_of(std::size_t part) const {
  const IndexRange own{first_row(part), first_row(part + 1)};
  return {own.first, own.last, &halos_[part], send_rows_[part], own};
}

void SolverContent::store(const RowReader& reader, const SolverOptions& options) {
  tiles_.resize(parts());
  reader.each(report_.first_rows, [&](std::size_t part, const CsrView& a) {
    PartShape& shape = plans_[part].shape;
    RowPieces pieces{on_host(engine_)};
    shape = shape_of(a, rows_of(part), storage_, pieces);
    tiles_[part] = memory_.allocate(shape.bytes);
    SolverOptions stored = options;
    stored.precondition = scaling_;
    pack(a, rows_of(part), shape, stored, pieces, tiles_[part].get());
  });
  for (std::size_t part = 0; part < parts(); ++part) {
    const PartShape& shape = plans_[part].shape;
    matrices_.push_back(EngineAccess::add(
        engine_, no_device, {tiles_[part].get(), shape.bytes, 1, shape.bytes, DType::bytes}, {},
        true));
    report_.halo_rows.push_back(shape.halo);
    std::int64_t border = 0;
    for (std::int64_t block = 0; block < shape.blocks; ++block)
      if (halos_[part].border[static_cast<std::size_t>(block)])
        border += std::min(shape.block_rows, shape.rows - block * shape.block_rows);
    report_.border_rows.push_back(border);
    report_.bytes.push_back(static_cast<std::size_t>(shape.bytes));
  }
}

void SolverContent::store_heads() {
  for (std::size_t part = 0; part < parts(); ++part) {
    const std::int64_t bytes = plans_[part].shape.head_bytes;
    const StoredTile& tile = head_tiles_.emplace_back(memory_.allocate(bytes));
    std::copy_n(tiles_[part].get(), bytes, tile.get());
    heads_.push_back(EngineAccess::add(engine_, no_device,
                                       {tile.get(), bytes, 1, bytes, DType::bytes}, {}, true));
  }
}

void SolverContent::update(const RowReader& reader, const void* diagonal) {
  const CsrView& outline = reader.outline();
  require(outline.rows == rows_ && outline.cols == rows_ && outline.dtype == dtype_,
          fmt::format("update(): a matrix of {} x {} and {}; expected {} x {} and {}", outline.rows,
                      outline.cols, name(outline.dtype), rows_, rows_, name(dtype_)));
  const SolverOptions options{chosen_.format, scaling_, diagonal};
  require(precondition_ != Precondition::diagonal || diagonal,
          "update(): a diagonal preconditioner needs its new diagonal");
  require(
      reader.is_whole() || precondition_ != Precondition::aggregation,
      "update(): aggregation needs the whole matrix in memory, and this one is a source of rows");
  std::vector<StoredTile> made(parts());
  reader.each(report_.first_rows, [&](std::size_t part, const CsrView& a) {
    const PartShape& shape = plans_[part].shape;
    const auto [first, last] = std::pair(first_row(part), first_row(part + 1));
    const Halo halo = find_halo(a, first, last, units_, on_host(engine_));
    RowPieces pieces{on_host(engine_)};
    const PartShape found = shape_of(a, rows_of(part), storage_, pieces);
    require(halo.columns == halos_[part].columns && found.elements == shape.elements &&
                found.narrow == shape.narrow,
            "update(): A has elements in other places than before; make a new solver");
    made[part] = memory_.allocate(shape.bytes);
    pack(a, rows_of(part), shape, options, pieces, made[part].get());
    require(same_pattern(shape, made[part].get(), tiles_[part].get()),
            "update(): A has elements in other places than before; make a new solver");
  });
  const auto exchange = [&] {
    for (std::size_t part = 0; part < parts(); ++part) {
      const HostAccess access = engine_.on_host(matrices_[part], Access::write);
      std::swap_ranges(tiles_[part].get(), tiles_[part].get() + plans_[part].shape.bytes,
                       made[part].get());
      if (heads_.empty()) continue;
      const HostAccess head = engine_.on_host(heads_[part], Access::write);
      std::copy_n(tiles_[part].get(), plans_[part].shape.head_bytes, head_tiles_[part].get());
    }
  };
  exchange();
  try {
    if (level_maker_) set_levels(level_maker_->make_again(outline));
  } catch (...) {
    exchange();  // The levels are those of the matrix that was there.
    throw;
  }
}

void SolverContent::make_levels(const CsrView& a, const SolverOptions& options) {
  if (parts() == 0) return;
  if (!has_steps(precondition_)) return;
  level_maker_ =
      std::make_unique<LevelMaker>(*this, LevelPlan{precondition_, degree_, unknowns_, units_});
  set_levels(level_maker_->make(a, options));
}

/// What an earlier call left belongs to levels that go.
void SolverContent::set_levels(std::vector<Level> levels) {
  report_.eigenvalues = level_maker_->bounds();
  report_.levels = level_maker_->reports();
  if (levels.empty()) return;
  if (levels_ && levels_->count() == 1 && levels.size() == 1)
    return levels_->set_steps(std::move(levels.front().steps));
  idle_.reset();
  codelets_.clear();
  levels_ = std::make_unique<Levels>(std::move(levels), plans_);
}

/// Two tasks for a product let the first not wait for the halo. Cores share their memory: they have
/// nothing to wait for. One task more mustn't cost more than the model says it saves.
bool SolverContent::choose_overlap(std::size_t part) const {
  if (!can_overlap(part)) return false;
  const bool has_loss = !report_.models.empty() && report_.models[part].overlapped_seconds() +
                                                           engine_.machine().launch_seconds >
                                                       report_.models[part].in_turn_seconds();
  return overlap_.value_or(device(part) != no_device && !has_loss);
}

bool SolverContent::can_overlap(std::size_t part) const {
  const PartShape& shape = plans_[part].shape;
  return shape.inner_blocks > 0 && shape.inner_blocks < shape.blocks;
}

/// A program has one part a device; cores have nothing to gain from it. Of several devices it needs
/// the memory in each other's reach, and an M that is part of a step.
bool SolverContent::choose_recorded(const SolverOptions& options) const {
  const std::set<DeviceId> devices(report_.devices.begin(), report_.devices.end());
  const bool has_cores = devices.contains(no_device);
  const bool is_alone = parts() == 1 && !has_cores;
  const bool are_several = parts() > 1 && devices.size() == parts() && !has_cores &&
                           !goes_by_host_ && !has_steps(precondition_) &&
                           can_meet(engine_.machine(), report_.devices);
  require(is_alone || are_several || parts() == 0 || !options.recorded.value_or(false),
          fmt::format("recorded iterations need one part of the rows a device, and on several "
                      "devices peer access, no route by way of the host and an M of blocks of "
                      "rows; here are {} parts on {}",
                      parts(), has_cores ? "cores" : fmt::format("{} devices", devices.size())));
  const bool pays =
      is_alone || (are_several && properties_of(engine_.machine().devices[device(0)].kind).records);
  return (is_alone || are_several) && options.recorded.value_or(pays);
}

/// Under the virtual clock, where bodies run one after the other, and where each may touch its own
/// operands alone, they are tasks.
bool SolverContent::are_joint() const {
  return is_recorded_ && parts() > 1 && !engine_.options().virtual_clock &&
         !engine_.options().protect && !has_lost_device();
}

bool SolverContent::has_lost_device() const {
  return std::ranges::any_of(
      report_.devices, [this](DeviceId each) { return EngineAccess::is_lost(engine_, each); });
}

const SolveCodelets& SolverContent::codelets(std::int64_t columns, MKind kind) const {
  const std::lock_guard lock(mutex_);
  const bool has_cycle = levels_ && kind == MKind::chosen;
  std::unique_ptr<SolveCodelets>& found = codelets_[{columns, kind}];
  if (!found)
    found = std::make_unique<SolveCodelets>(plans_, columns, has_cycle ? &levels_->plan() : nullptr,
                                            kind == MKind::chosen ? method() : CgMethod::classic);
  return *found;
}

std::unique_ptr<PartData> SolverContent::take_data(std::int64_t columns) const {
  const std::lock_guard lock(mutex_);
  return idle_ && idle_->columns() == columns ? std::move(idle_) : nullptr;
}

void SolverContent::give_back(std::unique_ptr<PartData> data) const {
  const std::lock_guard lock(mutex_);
  idle_.swap(data);
}

}  // namespace quadriga::sparse
