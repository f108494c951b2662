// SPDX-License-Identifier: BSD-3-Clause
// src/engine/one_memory.h: what an executor answers about memory where all data stay at home: the
// host's cores work on the user's.
#pragma once

#include "engine/executor.h"
#include "graph/task_life.h"

namespace quadriga {

/// Nothing has to be copied, kept on a device, or can be lost with one. Any thread.
class OneMemory : public Executor {
 public:
  void submitted(Task&) final {}
  std::vector<bool> partial_places(const Codelet&, const Datum&) const final { return {}; }
  bool bring_all_home(Nanoseconds) final { return true; }
  bool bring_ended_home(Nanoseconds) final { return true; }
  bool has_lingering() const noexcept final { return false; }
  bool give_back(std::span<Datum* const> data, bool overwrites, Nanoseconds) final {
    for (Datum* const each : data)
      if (overwrites) overwritten(*each);
    return true;
  }
  void final(Datum&) final {}
  void evict(Datum&) final {}
  std::vector<bool> valid(std::span<Datum* const> data, SpaceId space) const final {
    return std::vector<bool>(data.size(), space == host_space);
  }
  bool has_come_home(const Datum&) const final { return true; }
  DeviceServices& devices() noexcept final { return services_; }

 private:
  HostServices services_;
};

}  // namespace quadriga
