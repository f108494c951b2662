// SPDX-License-Identifier: BSD-3-Clause
// src/engine/adoption.h: orders tasks after foreign streams that still write data on devices.
//
// An adoption is a task that updates the data in place: its variant makes the stream that runs it
// wait for the other stream's event, so that the order of accesses does the rest.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/backend.h"
#include "graph/graph.h"

namespace quadriga {

/// What a task of this codelet waits for is its parameter, a pointer to a ForeignEvent.
const Codelet& adoption();

/// Keeps the events of adoptions until their tasks have ended. Any thread.
class AdoptedEvents {
 public:
  explicit AdoptedEvents(const Graph& graph) : graph_(graph) {}
  void keep(const TaskRef& task, std::unique_ptr<ForeignEvent> event);

 private:
  struct Adopted {
    TaskRef task;
    std::unique_ptr<ForeignEvent> event;
  };
  const Graph& graph_;
  std::mutex mutex_;
  std::vector<Adopted> adopted_;  ///< Guarded by mutex_.
};

}  // namespace quadriga
