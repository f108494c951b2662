// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/conjugate_gradients.h: the host's part of a solve: what to
// submit next, and when to end.
//
// The scalars stay on the devices. Iterations are submitted in batches, and the host reads the
// states of one batch while the next one runs: those that were queued beyond the end change
// nothing, so that x and the number of iterations don't depend on when it looks.
//
// When the recurrence says that all columns have converged, residuals are computed anew: that is
// the start of another solve from the x so far, and says at once whether there is anything left to
// do.
//
// Methods with one reduction an iteration stop where a residual is due to be replaced: that is the
// same program, but for the direction, which stays. Where such a column contradicts itself, classic
// iterations go on with it once no other runs; they decide what a failure is. Unchecked solves are
// classic from the start.
//
// An unchecked solve leaves that to its caller, who may resume it with another right side, the
// residual as the caller knows it: the direction stays, as if the recurrence had found that one.
#pragma once

#include <quadriga/sparse.h>

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "sparse/part_data.h"
#include "sparse/spectrum.h"

namespace quadriga::sparse {

class SolveContent {
 public:
  SolveContent(std::shared_ptr<const SolverContent> solver, const void* b, void* x,
               std::int64_t columns, SolveOptions options);

  bool advance(std::int64_t iterations);
  std::int64_t iterations() const noexcept;
  SolveResult finish();
  void resume(double rtol, std::int64_t iterations);

 private:
  /// States, and what came before, as they were after a batch.
  struct Snapshot {
    std::vector<std::byte> memory;
    Data data;
  };

  std::int64_t limit() const noexcept;
  bool any(IterationStatus status) const noexcept;
  PartData* data() const noexcept { return &**data_; }
  void prepare();
  void attach();
  void forget() noexcept;
  template <class Work>
  void despite_losses(Work work);
  void make(std::int64_t iterations);
  SolveResult gather_result() const;
  void start();
  void renew(bool has_product, bool goes_on = true);
  void become_classic();
  std::int64_t next_replacement() const noexcept;
  void check();
  void run_until(std::int64_t target);
  void take(Snapshot& snapshot);
  void note(const ColumnState& state, std::size_t column, const IterationRecord* history);
  void end_recurrence();
  std::int64_t next_batch(double seconds) noexcept;
  StopReason reason() const noexcept;

  std::shared_ptr<const SolverContent> solver_;
  const void* const b_memory_;
  void* const x_memory_;
  const std::int64_t columns_;
  SolveOptions options_;
  std::chrono::steady_clock::time_point begin_;
  std::vector<ColumnState> states_;
  std::array<Snapshot, 2> snapshots_;  ///< Before `data_`, which refers to their memory.
  std::optional<PartLease> data_;
  std::vector<Data> b_;
  std::vector<Data> x_;
  std::vector<std::vector<double>> residuals_;  ///< Of each column.
  std::vector<std::vector<CgStep>> steps_;      ///< Of each column, since the recurrence began.
  std::vector<CgStep> before_;      ///< The step before those, where the direction was kept.
  std::vector<double> conditions_;  ///< Of each column, by earlier recurrences.
  std::vector<double> last_true_;   ///< Of each column, at the last check.
  std::vector<double> true_;
  std::int64_t batch_ = 1;
  std::size_t losses_ = 0;  ///< Of devices.
  std::int64_t replacements_ = 0;
  bool zero_start_;
  bool keeps_direction_ = false;
  bool is_known_ = false;  ///< The states are this solve's.
  bool started_ = false;
  bool over_ = false;
  bool finished_ = false;
  bool is_checked_ = false;  ///< No step was made since residuals were computed anew.
  bool stagnated_ = false;
};

}  // namespace quadriga::sparse
