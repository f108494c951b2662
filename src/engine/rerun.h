// SPDX-License-Identifier: BSD-3-Clause
// src/engine/rerun.h: the tasks of a trace, submitted again without data to another engine.
#pragma once

#include <quadriga/engine.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/recorder.h"

namespace quadriga {

/// A task of a trace. Its submission's `when` is ignored.
struct RecordedTask {
  std::string name;
  Submission submission;
  double seconds = 0;  ///< That it took; its time on every device if it has no cost.
};

class Rerun {
 public:
  /// The engine, under the virtual clock and without computing, outlives this.
  /// Errors: invalid_argument if it is another one.
  Rerun(Engine& engine, std::vector<RecordedData> data);
  ~Rerun();
  Rerun(const Rerun&) = delete;
  Rerun& operator=(const Rerun&) = delete;

  /// In the order of their numbers. Owners that the machine lacks are ignored.
  /// Errors: invalid_argument if a task accesses data that don't exist, or follows one that wasn't
  ///         submitted before; as Engine::submit().
  void submit(std::span<const RecordedTask> tasks);

 private:
  const Codelet& codelet_of(const RecordedTask& task);
  Data data_of(std::uint32_t number);

  Engine& engine_;
  const std::vector<RecordedData> kinds_;
  std::vector<Data> data_;  ///< As far as tasks accessed them.
  std::vector<std::uintptr_t> homes_;
  std::map<std::string, std::unique_ptr<Codelet>> codelets_;
  std::map<std::uint64_t, Future> submitted_;  ///< Those that others follow may be among them.
};

}  // namespace quadriga
