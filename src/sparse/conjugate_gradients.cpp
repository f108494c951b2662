// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/conjugate_gradients.cpp: batches of iterations, looked at late; checks and restarts.
#include "sparse/conjugate_gradients.h"

#include <quadriga/error.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <iterator>

#include "sparse/kernels/one_reduction_scalars.h"

namespace quadriga::sparse {
namespace {

using std::chrono::steady_clock;

/// A restart that doesn't divide the residual by this is the last one.
constexpr double least_gain = 2;
/// A look at the states should come after about so long. Recorded batches cost the host little.
constexpr double batch_seconds = 5e-3;
constexpr double recorded_seconds = 1e-3;
constexpr std::int64_t iterations_a_row = 10;

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

/// The solution for a right side of zeros is zero, as SciPy has it: no tolerance would be met.
template <class T>
void clear_zero_columns(const T* b, T* x, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) {
    std::int64_t row = 0;
    while (row < rows && b[row * columns + c] == T{}) ++row;
    for (row = row < rows ? rows : 0; row < rows; ++row) x[row * columns + c] = T{};
  }
}

void clear_zero_columns(DType dtype, const void* b, void* x, std::int64_t rows,
                        std::int64_t columns) {
  // A complex number is zero if both parts are; -0 is zero.
  const auto clear = [&]<class T>(T) {
    clear_zero_columns(static_cast<const T*>(b), static_cast<T*>(x), rows, columns);
  };
  if (dtype == DType::float32) return clear(float{});
  if (dtype == DType::float64) return clear(double{});
  if (dtype == DType::complex64) return clear(std::complex<float>{});
  clear(std::complex<double>{});
}

}  // namespace

SolveContent::SolveContent(std::shared_ptr<const SolverContent> solver, const void* b, void* x,
                           std::int64_t columns, SolveOptions options)
    : solver_(std::move(solver)),
      b_memory_(b),
      x_memory_(x),
      columns_(columns),
      options_(std::move(options)),
      begin_(steady_clock::now()),
      zero_start_(options_.zero_start) {
  clear_zero_columns(solver_->dtype(), b, x, solver_->rows(), columns);
  prepare();
}

/// Nothing is known of the solve but the x at home.
void SolveContent::prepare() {
  forget();
  keeps_direction_ = false;
  data_.reset();
  data_.emplace(*solver_, columns_);
  data()->use(options_.checked ? solver_->method() : CgMethod::classic);
  attach();
}

void SolveContent::forget() noexcept {
  const auto count = static_cast<std::size_t>(columns_);
  states_.assign(count, {});
  residuals_.assign(count, {});
  steps_.assign(count, {});
  before_.resize(count, {1, 0});  // What is kept goes on from there.
  conditions_.assign(count, 1);
  last_true_.assign(count, INFINITY);
  true_.clear();
  replacements_ = 0;
  is_known_ = started_ = over_ = is_checked_ = stagnated_ = finished_ = false;
}

void SolveContent::attach() {
  b_ = data()->add_vector(b_memory_);
  x_ = data()->add_vector(x_memory_);
  const std::size_t bytes =
      data()->states_bytes() + static_cast<std::size_t>(history_bytes(columns_));
  for (Snapshot& each : snapshots_) {
    each.memory.assign(bytes, {});
    each.data = data()->add_home(each.memory.data(), static_cast<std::int64_t>(bytes));
  }
  data()->poll = [this] { return !options_.progress || options_.progress(iterations()); };
}

/// Where a device is lost the solve begins again on the others, from the x at home: tasks of its
/// parts run elsewhere. A function of the caller's may fail for losses of other engines.
template <class Work>
void SolveContent::despite_losses(Work work) {
  while (true) {
    try {
      work();
      return;
    } catch (const Error& error) {
      if (error.code() != Errc::device_lost || !solver_->has_lost_device() ||
          losses_ == solver_->parts())
        throw;
      ++losses_;
      zero_start_ = false;
      prepare();
    }
  }
}

std::int64_t SolveContent::limit() const noexcept {
  return options_.iterations < 0 ? iterations_a_row * solver_->rows() : options_.iterations;
}

std::int64_t SolveContent::iterations() const noexcept {
  std::int64_t most = 0;
  for (const ColumnState& each : states_) most = std::max(most, each.iterations);
  return most;
}

bool SolveContent::any(IterationStatus status) const noexcept {
  return std::ranges::any_of(states_,
                             [=](const ColumnState& each) { return each.status == status; });
}

void SolveContent::note(const ColumnState& state, std::size_t column,
                        const IterationRecord* history) {
  const std::int64_t known = states_[column].iterations;
  for (std::int64_t i = known; i < state.iterations; ++i) {
    const IterationRecord& each =
        history[i % history_length * columns_ + static_cast<std::int64_t>(column)];
    residuals_[column].push_back(each.residual);
    steps_[column].push_back({each.alpha, each.beta});
  }
}

/// The recurrence begins anew; what it has found of the spectrum so far is an estimate from below.
void SolveContent::end_recurrence() {
  for (std::size_t c = 0; c < steps_.size(); ++c) {
    conditions_[c] = std::max(conditions_[c], condition_of(steps_[c], before_[c]));
    if (!steps_[c].empty()) before_[c] = steps_[c].back();
    steps_[c].clear();
  }
}

void SolveContent::take(Snapshot& snapshot) {
  data()->wait_for(snapshot.data);
  std::vector<ColumnState> now(states_.size());
  std::memcpy(now.data(), snapshot.memory.data(), data()->states_bytes());
  const auto* const history =
      reinterpret_cast<const IterationRecord*>(snapshot.memory.data() + data()->states_bytes());
  for (std::size_t c = 0; c < now.size(); ++c) note(now[c], c, history);
  states_ = std::move(now);
}

/// Residuals of the x so far become those of the recurrence.
void SolveContent::renew(bool has_product, bool goes_on) {
  const bool is_classic = data()->method() == CgMethod::classic;
  const bool replaces = !is_classic && is_known_;
  if (!replaces) end_recurrence();
  if (!keeps_direction_ && !replaces) before_.assign(steps_.size(), CgStep{1, 0});
  if (has_product) {
    replaces ? data()->reload(x_) : data()->load(x_);
    data()->multiply({false});
  }
  data()->residual(b_, {has_product, keeps_direction_ || replaces});
  data()->restart({{options_.rtol, options_.atol}, !is_known_, keeps_direction_, replaces});
  is_known_ = true;
  keeps_direction_ = false;
  data()->snapshot(snapshots_[0].data);
  take(snapshots_[0]);
  true_.clear();
  for (const ColumnState& each : states_) true_.push_back(std::sqrt(each.squared));
  is_checked_ = true;
  if (is_classic || !goes_on || !any(IterationStatus::running)) return;
  data()->begin_steps(replaces);
  if (replaces) ++replacements_;
}

/// Where A isn't positive definite along the direction of columns that contradict themselves, they
/// end there, as they would have by classic iterations. Else it was rounding, and the direction is
/// of no use any more.
void SolveContent::become_classic() {
  data()->become_classic();
  data()->restart({{options_.rtol, options_.atol}, false, true});
  data()->judge_direction();
  renew(true);
}

void SolveContent::start() {
  started_ = true;
  data()->bring(b_, x_);
  renew(!zero_start_);
  for (std::size_t c = 0; c < states_.size(); ++c) residuals_[c].push_back(true_[c]);
  over_ = !any(IterationStatus::running);
}

/// No column runs any more by the recurrence.
void SolveContent::check() {
  const bool is_open = any(IterationStatus::due) || any(IterationStatus::doubtful);
  if (!options_.checked || (!is_open && std::ranges::any_of(states_, [](const auto& each) {
        return is_fault(each.status);
      }))) {
    over_ = true;
    return;
  }
  renew(true);
  const bool was_classic = data()->method() == CgMethod::classic;
  if (!any(IterationStatus::running) && any(IterationStatus::doubtful)) become_classic();
  over_ = !any(IterationStatus::running);
  for (std::size_t c = 0; was_classic && c < states_.size(); ++c) {
    if (states_[c].status == IterationStatus::running && !(true_[c] * least_gain < last_true_[c]))
      stagnated_ = over_ = true;
    last_true_[c] = true_[c];
  }
}

/// Iterations until a column that runs is due at the latest: batches end there.
std::int64_t SolveContent::next_replacement() const noexcept {
  const std::int64_t period = period_of(data()->method());
  std::int64_t least = limit();
  for (const ColumnState& each : states_)
    if (period > 0 && each.status == IterationStatus::running)
      least = std::min(least, each.since + period - each.iterations);
  return std::max<std::int64_t>(1, least);
}

std::int64_t SolveContent::next_batch(double seconds) noexcept {
  const double wanted = data()->is_recorded() ? recorded_seconds : batch_seconds;
  if (seconds < wanted) batch_ = std::min(batch_ * 2, history_length);
  if (seconds > 4 * wanted) batch_ = std::max<std::int64_t>(1, batch_ / 2);
  return batch_;
}

void SolveContent::run_until(std::int64_t target) {
  std::int64_t submitted = iterations();
  std::size_t behind = 0;  // Batches submitted and not looked at.
  std::size_t next = 0;
  std::int64_t size = batch_;
  auto last = steady_clock::now();
  while (behind > 0 || (any(IterationStatus::running) && submitted < target)) {
    while (behind < snapshots_.size() && any(IterationStatus::running) && submitted < target) {
      const std::int64_t count = std::min(size, target - submitted);
      data()->iterate(x_, count);
      submitted += count;
      data()->snapshot(snapshots_[(next + behind) % snapshots_.size()].data);
      ++behind;
    }
    take(snapshots_[next]);
    next = (next + 1) % snapshots_.size();
    --behind;
    size = next_batch(seconds_since(last));
    last = steady_clock::now();
    if (!data()->poll()) fail(Errc::cancelled, "the solve was cancelled by its progress function");
  }
  is_checked_ = false;
}

bool SolveContent::advance(std::int64_t count) {
  require(count >= 0, "advance(): expected a number of iterations of 0 or more");
  require(!finished_, "this solve has finished");
  if (solver_->parts() == 0) return over_ = true;
  despite_losses([&] { make(count); });
  return over_;
}

void SolveContent::make(std::int64_t count) {
  if (!started_) start();
  const std::int64_t room = limit() - iterations();
  const std::int64_t target = iterations() + std::min(room, count);
  while (!over_ && iterations() < target) {
    run_until(iterations() + std::min(target - iterations(), next_replacement()));
    if (!any(IterationStatus::running)) check();
  }
  over_ = over_ || iterations() >= limit();
  for (const Data& each : x_) data()->wait_for(each);
}

StopReason SolveContent::reason() const noexcept {
  if (stagnated_) return StopReason::stagnated;
  const auto first = std::ranges::find_if(
      states_, [](const ColumnState& each) { return each.status != IterationStatus::converged; });
  if (first == states_.end() || solver_->parts() == 0) return StopReason::converged;
  switch (first->status) {
    case IterationStatus::not_positive_definite:
      return StopReason::not_positive_definite;
    case IterationStatus::indefinite_preconditioner:
      return StopReason::indefinite_preconditioner;
    case IterationStatus::not_finite:
      return StopReason::not_finite;
    case IterationStatus::diverged:
      return StopReason::diverged;
    case IterationStatus::running:
    case IterationStatus::converged:
    case IterationStatus::due:
    case IterationStatus::doubtful:
      break;
  }
  return StopReason::iterations;
}

SolveResult SolveContent::finish() {
  require(!finished_, "this solve has finished");
  despite_losses([this] {
    while (!advance(history_length * history_length)) {
    }
    if (options_.checked && !is_checked_ && solver_->parts() > 0) renew(true, false);
    data()->wait(x_);
  });
  if (!options_.checked)
    std::ranges::transform(states_, std::back_inserter(true_ = {}),
                           [](const ColumnState& each) { return std::sqrt(each.squared); });
  finished_ = true;
  end_recurrence();
  const SolveResult result = gather_result();
  data_->end_call();
  return result;
}

void SolveContent::resume(double rtol, std::int64_t iterations) {
  require(finished_ && !options_.checked, "only an unchecked solve that has finished is resumed");
  begin_ = steady_clock::now();
  options_.rtol = rtol;
  options_.iterations = iterations;
  clear_zero_columns(solver_->dtype(), b_memory_, x_memory_, solver_->rows(), columns_);
  forget();
  zero_start_ = keeps_direction_ = true;
  data_->resume();
  attach();
}

SolveResult SolveContent::gather_result() const {
  SolveResult result;
  result.reason = reason();
  result.iterations = iterations();
  result.true_residuals = true_.empty() ? std::vector<double>(states_.size()) : true_;
  for (const ColumnState& each : states_) result.tolerances.push_back(each.tolerance);
  std::size_t longest = 0;
  for (const auto& each : residuals_) longest = std::max(longest, each.size());
  for (std::size_t i = 0; i < longest; ++i)
    for (const auto& each : residuals_)
      result.residuals.push_back(each[std::min(i, each.size() - 1)]);
  result.conditions = conditions_;
  result.method = data()->method();
  result.replacements = replacements_;
  result.seconds = seconds_since(begin_);
  return result;
}

}  // namespace quadriga::sparse
