// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/part_data.cpp: buffers for sums and transfers; tasks in the order of an iteration.
#include "sparse/part_data.h"

#include <quadriga/error.h>

#include <algorithm>

#include "engine/engine_access.h"
#include "sparse/kernels/iterations.h"

namespace quadriga::sparse {
namespace {

/// Sums of a residual: r^H*M*r, ||r||^2, ||b||^2.
constexpr std::int64_t residual_quantities = 3;

}  // namespace

std::exception_ptr with_loss(std::exception_ptr failure, bool is_lost) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (error.code() != Errc::cancelled || !is_lost) return failure;
    return std::make_exception_ptr(
        Error(Errc::device_lost, "a device was lost during iterations of several"));
  } catch (...) {
    return failure;
  }
}

PartData::PartData(const SolverContent& content, std::int64_t columns, MKind kind)
    : content_(content),
      columns_(columns),
      codelets_(content.codelets(columns, kind)),
      states_(static_cast<std::size_t>(columns)),
      history_(static_cast<std::size_t>(columns * history_length)) {
  Engine& engine = content.engine();
  EngineAccess::wait(engine, group_, {});  // refused where a task can't wait
  const auto temporary = [&](std::int64_t rows, std::int64_t cols, DType dtype) {
    return kept_.emplace_back(engine.temporary(rows, cols, dtype));
  };
  state_ = add_home(states_.data(), static_cast<std::int64_t>(states_bytes()));
  past_ = add_home(history_.data(), history_bytes(columns));
  kept_.swap(of_call_);
  const std::size_t count = content.parts();
  sends_.resize(count);
  arrivals_.resize(count);
  passed_.resize(count);
  for (std::size_t part = 0; part < count; ++part) {
    work_.push_back(temporary(codelets_.work(part).bytes, 1, DType::bytes));
    const std::int64_t sums = content.plan(part).shape.blocks * columns;
    product_sums_.push_back(temporary(sums, 1, DType::float64));
    residual_sums_.push_back(temporary(sums * residual_quantities, 1, DType::float64));
  }
  for (const HaloTransfer& each : content.transfers()) {
    const Data buffer = temporary(each.count * columns, 1, content.dtype());
    const bool is_copied = content.goes_by_host(each);
    const Data copy = is_copied ? temporary(each.count * columns, 1, content.dtype()) : buffer;
    sends_[static_cast<std::size_t>(each.from)].push_back(buffer);
    passed_[static_cast<std::size_t>(each.from)].push_back(copy);
    arrivals_[static_cast<std::size_t>(each.to)].push_back(copy);
  }
  if (codelets_.cycle()) levels_.emplace(content, *codelets_.cycle());
  if (content.are_joint() && !levels_) joint_.emplace(content, codelets_, columns);
  is_recorded_ = content.is_alone_recorded() || joint_;
  if (codelets_.one_reduction())
    one_reduction_.emplace(
        content, *codelets_.one_reduction(),
        OneReductionOperands{state_, past_, work_, product_sums_, residual_sums_, sends_, arrivals_,
                             [this](std::size_t part) { pass_on(part); },
                             [this] { multiply({false}); }},
        group_);
}

PartData::~PartData() {
  try {
    EngineAccess::cancel(content_.engine(), group_);
    end_call();
    levels_.reset();
    joint_.reset();
    content_.engine().remove(kept_, true);
  } catch (...) {
    // An engine that has broken down said so where somebody waited.
  }
}

Data PartData::add_home(void* home, std::int64_t bytes) {
  return of_call_.emplace_back(EngineAccess::add(content_.engine(), no_device,
                                                 {home, bytes, 1, bytes, DType::bytes}, {}, true));
}

/// The last that came goes first, so that of places of equal size the first one gets its own again.
void PartData::end_call() {
  std::ranges::reverse(of_call_);
  content_.engine().remove(of_call_, true);
  of_call_.clear();
  poll = nullptr;
}

std::vector<Data> PartData::add_vector(const void* vector) {
  // Tasks write to what is an operand to be written only.
  auto* const memory = static_cast<std::byte*>(const_cast<void*>(vector));
  const auto row_bytes = columns_ * static_cast<std::int64_t>(size_of(content_.dtype()));
  std::vector<Data> parts;
  for (std::size_t part = 0; part < content_.parts(); ++part)
    parts.push_back(add_home(memory + content_.first_row(part) * row_bytes,
                             content_.plan(part).shape.rows * row_bytes));
  return parts;
}

void PartData::submit(const Codelet& codelet, std::size_t part) {
  SubmitOptions options;
  options.device = content_.device(part);
  EngineAccess::submit(content_.engine(), codelet, operands_, {}, options, &group_);
  operands_.clear();
}

template <class Params>
void PartData::submit(const Codelet& codelet, std::size_t part, const Params& params) {
  SubmitOptions options;
  options.device = content_.device(part);
  EngineAccess::submit(content_.engine(), codelet, operands_, std::as_bytes(std::span(&params, 1)),
                       options, &group_);
  operands_.clear();
}

/// What a neighbour's product needs, or the next step of M.
void PartData::take_sends(std::size_t part, bool is_for_product) {
  const bool is_step_of_m = levels_ && !is_for_product;
  for (const Data& each : is_step_of_m ? levels_->first_sends(part) : sends_[part])
    take(each, Access::write);
}

/// A part has written what it sends: what goes by way of the host is copied there.
void PartData::pass_on(std::size_t part) {
  const std::vector<HaloTransfer>& sends = content_.plan(part).sends;
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (!content_.goes_by_host(sends[i])) continue;
    take(sends_[part][i], Access::read);
    take(passed_[part][i], Access::write);
    EngineAccess::submit(content_.engine(), codelets_.pass(), operands_, {}, {}, &group_);
    operands_.clear();
  }
}

void PartData::take_arrivals(std::size_t part) {
  for (const Data& each : arrivals_[part]) take(each, Access::read);
}

void PartData::bring(const std::vector<Data>& b, const std::vector<Data>& x) {
  if (!is_recorded_ || content_.engine().options().virtual_clock) return;
  for (std::size_t part = 0; part < parts(); ++part) {
    take(b[part], Access::read);
    take(x[part], Access::read);
    submit(codelets_.bring(), part);
  }
}

void PartData::load(const std::vector<Data>& x) {
  for (std::size_t part = 0; part < parts(); ++part) {
    take(content_.head(part), Access::read);
    take(x[part], Access::read);
    take(work_[part], Access::write);
    take_sends(part, true);
    submit(codelets_.part(part).load, part);
    pass_on(part);
  }
}

void PartData::reload(const std::vector<Data>& x) { one_reduction_->reload(x); }

void PartData::begin_steps(bool keeps_direction) {
  one_reduction_->begin(keeps_direction);
  if (joint_) joint_->forget();
}

void PartData::become_classic() {
  one_reduction_->hand_over();
  method_ = CgMethod::classic;
}

void PartData::judge_direction() {
  multiply({true});
  submit_scalars(codelets_.set_step(), {{state_, Access::update}}, product_sums_);
}

void PartData::product_of(std::size_t part, ProductParams params, ProductMode mode) {
  const auto of = [&](Data matrix, Access sums) {
    take(matrix, Access::read);
    take(state_, Access::read);
    take(work_[part], Access::update);
    take(product_sums_[part], sums);
  };
  const auto first = [&](Access sums) { of(content_.matrix(part), sums); };
  const std::span<const Data> remainders = content_.remainders(part);
  const PartCodelets& codelets = codelets_.part(part);
  const bool splits = mode == ProductMode::planned
                          ? content_.splits(part)
                          : mode == ProductMode::overlapped && content_.can_overlap(part);
  first(Access::write);
  if (mode == ProductMode::compute) {
    submit(codelets.alone, part, params);
  } else if (splits && !remainders.empty()) {
    submit(codelets.inner, part, params);
    for (std::size_t i = 0; i < remainders.size(); ++i) {
      of(remainders[i], Access::update);
      take(arrivals_[part][i], Access::read);
      submit(codelets.remainders[i], part, params);
    }
    return;
  } else if (splits) {
    submit(codelets.inner, part, params);
    first(Access::update);
    take_arrivals(part);
    submit(codelets.border, part, params);
  } else {
    take_arrivals(part);
    submit(codelets.product, part, params);
  }
  for (std::size_t i = 0; i < remainders.size(); ++i) {
    of(remainders[i], Access::update);
    submit(codelets.resting[i], part, params);
  }
}

/// Backward after forward, where parts pass through a device: the last that it held are the first
/// that it needs.
void PartData::multiply(ProductParams params, ProductMode mode) {
  for (std::size_t i = 0; i < parts(); ++i)
    product_of(is_backward_ ? parts() - 1 - i : i, params, mode);
  is_backward_ = !is_backward_ && content_.report().streamed_bytes > 0;
}

Relaxation PartData::first_relaxation() const {
  return levels_ ? content_.levels()->plan().first : Relaxation{};
}

/// The rest of M*r, and what the product needs of it.
void PartData::precondition(bool always) {
  if (!levels_) return;
  const FinestLevel finest{state_, work_, residual_sums_, sends_,
                           [this](std::size_t part) { pass_on(part); }};
  levels_->submit(finest, always, group_);
}

void PartData::residual(const std::vector<Data>& b, ResidualParams params) {
  params.first = first_relaxation();
  for (std::size_t part = 0; part < parts(); ++part) {
    const PartCodelets& codelets = codelets_.part(part);
    const bool has_work = params.has_product || params.keeps_direction;
    take(content_.head(part), Access::read);
    take(b[part], Access::read);
    take(work_[part], has_work ? Access::update : Access::write);
    take(residual_sums_[part], Access::write);
    take_sends(part, false);
    submit(has_work ? codelets.residual : codelets.begin, part, params);
    if (!levels_) pass_on(part);
  }
  precondition(true);
}

void PartData::submit_scalars(const Codelet& codelet, std::initializer_list<Operand> first,
                              const std::vector<Data>& sums, std::span<const std::byte> params) {
  operands_.assign(first);
  for (const Data& each : sums) take(each, Access::read);
  SubmitOptions options;
  options.device = content_.device(0);
  EngineAccess::submit(content_.engine(), codelet, operands_, params, options, &group_);
  operands_.clear();
}

void PartData::restart(const RestartParams& params) {
  submit_scalars(codelets_.restart(), {{state_, Access::update}}, residual_sums_,
                 std::as_bytes(std::span(&params, 1)));
  if (joint_) joint_->forget();
}

void PartData::iterate(const std::vector<Data>& x, std::int64_t count) {
  if (is_recorded_ && try_recorded(x, count)) return;
  for (std::int64_t i = 0; i < count; ++i) iterate_by_tasks(x);
}

void PartData::iterate_recorded(const std::vector<Data>& x, std::int64_t count) {
  if (joint_)
    return joint_->iterate(
        {state_, past_, x, work_, product_sums_, residual_sums_, sends_, is_classic()}, count,
        group_);
  take(content_.matrix(0), Access::read);
  take(state_, Access::update);
  take(x.front(), Access::update);
  take(work_[0], Access::update);
  take(product_sums_[0], Access::write);
  take(residual_sums_[0], Access::write);
  take(past_, Access::update);
  if (levels_) levels_->append_operands(operands_);
  const std::int64_t generation = levels_ ? content_.levels()->plan().generation : 0;
  submit(is_classic() ? codelets_.iterations() : codelets_.one_reduction()->iterations(), 0,
         IterationsParams{count, generation});
}

/// All data at once may be more than the device has, where those of each task alone aren't.
bool PartData::try_recorded(const std::vector<Data>& x, std::int64_t count) {
  try {
    iterate_recorded(x, count);
    return true;
  } catch (const Error& error) {
    operands_.clear();
    if (error.code() != Errc::too_large || content_.must_record()) throw;
    return is_recorded_ = false;
  }
}

void PartData::iterate_by_tasks(const std::vector<Data>& x) {
  if (!is_classic()) return one_reduction_->iterate(x);
  multiply({true});
  submit_scalars(codelets_.set_step(), {{state_, Access::update}}, product_sums_);
  for (std::size_t part = 0; part < parts(); ++part) {
    take(content_.head(part), Access::read);
    take(state_, Access::read);
    take(x[part], Access::update);
    take(work_[part], Access::update);
    take(residual_sums_[part], Access::write);
    take_sends(part, false);
    submit(codelets_.part(part).step, part, LevelParams{first_relaxation()});
    if (!levels_) pass_on(part);
  }
  precondition(false);
  submit_scalars(codelets_.set_direction(), {{state_, Access::update}, {past_, Access::update}},
                 residual_sums_);
}

void PartData::apply(const std::vector<Data>& y) {
  for (std::size_t part = 0; part < parts(); ++part) {
    take(content_.matrix(part), Access::read);
    take(y[part], Access::write);
    take(work_[part], Access::update);
    take_arrivals(part);
    submit(codelets_.part(part).apply, part);
    const std::span<const Data> remainders = content_.remainders(part);
    for (std::size_t i = 0; i < remainders.size(); ++i) {
      take(remainders[i], Access::read);
      take(y[part], Access::update);
      take(work_[part], Access::update);
      submit(codelets_.part(part).additions[i], part);
    }
  }
}

void PartData::snapshot(Data to) {
  submit_scalars(codelets_.snapshot(), {{state_}, {past_}, {to, Access::write}}, {});
}

void PartData::raise_failure() {
  if (const auto failure = EngineAccess::failure_of(content_.engine(), group_))
    std::rethrow_exception(with_loss(failure, joint_ && content_.has_lost_device()));
  if (poll && !poll()) fail(Errc::cancelled, "the solve was cancelled by its progress function");
}

void PartData::wait_for(Data data) {
  constexpr double pause_seconds = 0.05;
  Engine& engine = content_.engine();
  // Under the virtual clock nothing happens between looks.
  const double seconds = engine.options().virtual_clock ? -1 : pause_seconds;
  while (true) {
    try {
      engine.wait(data, seconds);
      return;
    } catch (const Error& error) {
      raise_failure();
      if (error.code() != Errc::deadline) throw;
    }
  }
}

void PartData::wait(std::span<const Data> data) {
  constexpr double pause_seconds = 0.05;
  Engine& engine = content_.engine();
  const double seconds = engine.options().virtual_clock ? -1 : pause_seconds;
  while (true) {
    try {
      EngineAccess::wait(engine, group_, data, seconds);
      return;
    } catch (const Error& error) {
      raise_failure();
      if (error.code() != Errc::deadline) throw;
    }
  }
}

PartLease::PartLease(const SolverContent& content, std::int64_t columns)
    : content_(content), data_(content.take_data(columns)) {
  if (!data_) data_ = std::make_unique<PartData>(content, columns);
}

PartLease::~PartLease() {
  if (is_idle_) content_.give_back(std::move(data_));
}

void PartLease::end_call() {
  data_->end_call();
  is_idle_ = true;
}

PartData& PartLease::resume() noexcept {
  is_idle_ = false;
  return *data_;
}

}  // namespace quadriga::sparse
