// SPDX-License-Identifier: BSD-3-Clause
// python/src/named_tasks.h: which failed tasks an engine, or an error on its way, still names.
//
// Invariants
//   1. A task is named while a hold on its number exists. Each failure of a body has one, so that
//      copies of it hold it, wherever they are.
//   2. Holds end on any thread, with or without the GIL: neither needs the other.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace quadriga::python {

/// Any thread may call anything.
class NamedTasks {
 public:
  using Hold = std::shared_ptr<const void>;

  /// Holds the number until the last copy of the result has ended; also after this has.
  Hold hold(long long number);
  /// The numbers whose last hold has ended since the last call.
  std::vector<long long> take_unnamed();

 private:
  struct Known {
    std::mutex mutex;
    std::map<long long, int> holds;    // How many, by number.
    std::map<long long, int> unnamed;  // Entries of `holds` that have ended: moved without memory.
  };
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

}  // namespace quadriga::python
