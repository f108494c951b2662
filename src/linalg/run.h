// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/run.h: one call's tasks on an engine: submits and counts them, shows progress, waits.
//
// Used by the thread that made the call. Data that a run adds is gone when the run is.
#pragma once

#include <quadriga/linalg.h>

#include <chrono>
#include <memory>
#include <vector>

#include "graph/group.h"

namespace quadriga::linalg {

class Run {
 public:
  /// `tasks`: how many will be submitted, about; for progress. Errors: unavailable inside of a task
  /// on a device.
  Run(Engine& engine, const Options& options, double tasks);
  /// Cancels what was submitted unless wait() returned; forgets the run's data.
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Engine& engine() noexcept { return engine_; }
  const Options& options() const noexcept { return options_; }
  /// Nothing computes: tiles have addresses but no content.
  bool pretends() const noexcept;

  /// Errors: as Engine::submit(); the first failure of a task so far; cancelled.
  void submit(const Codelet& codelet, std::initializer_list<Operand> operands,
              std::span<const std::byte> params, const SubmitOptions& where = {});
  template <class Params>
  void submit(const Codelet& codelet, std::initializer_list<Operand> operands, const Params& params,
              SubmitOptions where = {}) {
    submit(codelet, operands, std::as_bytes(std::span(&params, 1)), where);
  }
  /// Waits until all tasks have ended and what they wrote is home.
  /// Errors: the first failure (the others are cancelled then); cancelled.
  void wait();

  /// A tile at home, for this run.
  Data add(void* home, std::int64_t rows, std::int64_t cols, std::int64_t ld, DType dtype);
  /// A tile of a view with contiguous columns, wherever that lies.
  Data add(const MatrixView& tile);
  /// A tile without a home, for this run.
  Data add(std::int64_t rows, std::int64_t cols, DType dtype);
  /// Keeps what tasks refer to until the run has ended.
  void keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }

 private:
  void poll();
  void end();

  Engine& engine_;
  const Options& options_;
  double tasks_;
  std::uint64_t ended_before_ = 0;
  std::uint64_t submitted_ = 0;
  std::chrono::steady_clock::time_point polled_;
  std::vector<Data> data_;
  std::vector<std::shared_ptr<const void>> kept_;
  TaskGroup group_;
  bool over_ = false;
};

}  // namespace quadriga::linalg
