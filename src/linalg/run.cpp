// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/run.cpp: submission with a look at failures and progress now and then.
#include "linalg/run.h"

#include <algorithm>

#include "engine/engine_access.h"
#include "linalg/view.h"

namespace quadriga::linalg {

using std::chrono::steady_clock;

Run::Run(Engine& engine, const Options& options, double tasks)
    : engine_(engine),
      options_(options),
      tasks_(std::max(1.0, tasks)),
      polled_(steady_clock::now()) {
  EngineAccess::wait(engine_, group_,
                     {});  // refused where a task can't wait, before there is anything to end
  if (options_.progress) ended_before_ = engine_.counters().ended;
}

Run::~Run() {
  try {
    if (!over_) EngineAccess::cancel(engine_, group_);
    end();
  } catch (...) {
    // An engine that has broken down, as for want of threads, said so where the run waited.
  }
}

void Run::end() {
  over_ = true;
  engine_.remove(data_, true);
  data_.clear();
}

bool Run::pretends() const noexcept {
  return engine_.options().virtual_clock && !engine_.options().compute;
}

void Run::poll() {
  if (const std::exception_ptr failure = EngineAccess::failure_of(engine_, group_)) {
    EngineAccess::cancel(engine_, group_);
    std::rethrow_exception(failure);
  }
  constexpr auto pause = std::chrono::milliseconds(100);
  const auto now = steady_clock::now();
  if (!options_.progress || now - polled_ < pause) return;
  polled_ = now;
  const double ended = static_cast<double>(engine_.counters().ended - ended_before_);
  if (options_.progress(std::min(0.999, ended / tasks_))) return;
  EngineAccess::cancel(engine_, group_);
  fail(Errc::cancelled, "the call was cancelled by its progress function");
}

void Run::submit(const Codelet& codelet, std::initializer_list<Operand> operands,
                 std::span<const std::byte> params, const SubmitOptions& where) {
  EngineAccess::submit(engine_, codelet, std::span(operands.begin(), operands.size()), params,
                       where, &group_);
  constexpr std::uint64_t often = 64;
  if (++submitted_ % often == 0) poll();
}

void Run::wait() {
  // Under the virtual clock nothing happens between polls, unless somebody looks on.
  const bool polls = options_.progress || !engine_.options().virtual_clock;
  constexpr double pause_seconds = 0.05;
  for (bool ended = false; !ended;) {
    try {
      EngineAccess::wait(engine_, group_, data_, polls ? pause_seconds : -1);
      ended = true;
    } catch (const Error& error) {
      if (error.code() != Errc::deadline) throw;
      poll();
    }
  }
  end();
  if (options_.progress) options_.progress(1);
}

Data Run::add(void* home, std::int64_t rows, std::int64_t cols, std::int64_t ld, DType dtype) {
  return data_.emplace_back(
      EngineAccess::add(engine_, no_device, {home, rows, cols, ld, dtype}, {}, true));
}

Data Run::add(const MatrixView& tile) { return data_.emplace_back(register_tile(engine_, tile)); }

Data Run::add(std::int64_t rows, std::int64_t cols, DType dtype) {
  return data_.emplace_back(engine_.temporary(rows, cols, dtype));
}

}  // namespace quadriga::linalg
