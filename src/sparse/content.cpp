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
  require(options.split == Split::rows || !has_steps(options.precondition),
          "a split by columns with an M of several steps; expected one of blocks of rows, or rows "
          "that stay whole");
}

/// What is stored with the rows: the blocks of M, or of its smoother.
Precondition scaling_of(Precondition precondition, int inverse_rows) {
  if (has_levels(precondition))
    return inverse_rows > 1 ? Precondition::block_jacobi : Precondition::jacobi;
  return precondition == Precondition::chebyshev ? Precondition::jacobi : precondition;
}

double bytes_of(const CsrView& a, std::int64_t row_bytes) {
  return static_cast<double>(a.elements) * static_cast<double>(size_of(a.dtype) + sizeof(int)) +
         static_cast<double>(a.rows) * static_cast<double>(row_bytes);
}

bool is_on_cores(const Machine& machine, DeviceId device) {
  return device == no_device || machine.devices[device].kind == DeviceKind::cpu;
}

/// Rows on cores have the bits of those on devices that run the same variants; others' bits depend
/// on which rows they are, and so on the number of devices.
bool may_add_cores(const Machine& machine, const SolverOptions& options) {
  return options.fast || std::ranges::none_of(machine.devices, [](const Device& each) {
           return is_accelerator(each.kind) && variants_of(each.kind) != DeviceKind::cpu;
         });
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
      stored_(engine, given.spill) {
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
  report_.split = options.split;
  place(reader, options);
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
  if (streaming.bytes > 0) stored_.add_heads(plans_);
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
  return choose_places(engine_, {options.parts, bytes_of(a, row_bytes_of(method)),
                                 !options.recorded, may_add_cores(engine_.machine(), options)});
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

void SolverContent::place(const RowReader& reader, const SolverOptions& options) {
  report_.block_rows = units_.block_rows;
  report_.dense_rows = units_.dense_rows;
  const CsrView& a = reader.outline();
  const Places places = places_of(a, options, report_.method);
  cut(a, places);
  plan_parts(reader);
  if (places.saved_by_cores == 0) return;
  std::vector<bool> on_cores;
  for (const DeviceId each : report_.devices)
    on_cores.push_back(is_on_cores(engine_.machine(), each));
  const double added =
      exchange_with(engine_.machine(), plans_, report_.devices, on_cores, dtype_, options.route);
  if (added < places.saved_by_cores) return;
  cut(a, choose_places(engine_, {0, bytes_of(a, row_bytes_of(report_.method)), true, false}));
  plan_parts(reader);
}

void SolverContent::cut(const CsrView& a, const Places& places) {
  report_.first_rows.clear();
  report_.devices.clear();
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
  halos_.assign(count, {});
  reader.each(first, [&](std::size_t part, const CsrView& a) {
    halos_[part] = find_halo(a, first[part], first[part + 1], units_, on_host(engine_));
  });
  transfers_ = plan_exchange(halos_, first);
  plans_.assign(count, {});
  send_rows_.assign(count, {});
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
  stored_.plan(report_.split, storage_, parts());
  SolverOptions stored = options;
  stored.precondition = scaling_;
  reader.each(report_.first_rows, [&](std::size_t part, const CsrView& a) {
    stored_.store(part, {a, rows_of(part), report_.first_rows}, stored, plans_[part]);
  });
  for (std::size_t part = 0; part < parts(); ++part) {
    const PartShape& shape = plans_[part].shape;
    report_.halo_rows.push_back(shape.halo);
    std::int64_t border = 0;
    for (std::int64_t block = 0; block < shape.blocks; ++block)
      if (halos_[part].border[static_cast<std::size_t>(block)])
        border += std::min(shape.block_rows, shape.rows - block * shape.block_rows);
    report_.border_rows.push_back(border);
    report_.bytes.push_back(static_cast<std::size_t>(stored_bytes(plans_[part])));
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
  std::vector<StoredMatrix::Tiles> made(parts());
  reader.each(report_.first_rows, [&](std::size_t part, const CsrView& a) {
    const Halo halo = find_halo(a, first_row(part), first_row(part + 1), units_, on_host(engine_));
    require(halo.columns == halos_[part].columns,
            "update(): A has elements in other places than before; make a new solver");
    made[part] =
        stored_.make_again(part, {a, rows_of(part), report_.first_rows}, options, plans_[part]);
  });
  const auto exchange = [&] { stored_.exchange(made, plans_); };
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
  return shape.has_remainders || (shape.inner_blocks > 0 && shape.inner_blocks < shape.blocks);
}

/// A program has one part a device; cores have nothing to gain from it. Of several devices it needs
/// the memory in each other's reach, and an M that is part of a step.
bool SolverContent::choose_recorded(const SolverOptions& options) const {
  const std::set<DeviceId> devices(report_.devices.begin(), report_.devices.end());
  const bool has_cores = std::ranges::any_of(
      devices, [this](DeviceId each) { return is_on_cores(engine_.machine(), each); });
  const bool is_alone = parts() == 1 && !has_cores;
  const bool are_several = parts() > 1 && devices.size() == parts() && !has_cores &&
                           !goes_by_host_ && !has_steps(precondition_) &&
                           options.split == Split::rows &&
                           can_meet(engine_.machine(), report_.devices);
  require(is_alone || are_several || parts() == 0 || !options.recorded.value_or(false),
          fmt::format("recorded iterations need one part of the rows a device, and on several "
                      "devices peer access, no route by way of the host, rows that stay whole and "
                      "an M of blocks of rows; here are {} parts on {}",
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
