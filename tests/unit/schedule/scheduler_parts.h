// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/scheduler_parts.h: the parts of a scheduler put together without one: two
// devices, tiles with homes, and a list of what the parts tell. Nothing runs: a test says what
// ended.
#pragma once

#include <gtest/gtest.h>
#include <quadriga/codelet.h>
#include <quadriga/error.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "schedule/device_turns.h"
#include "schedule/endings.h"
#include "schedule/memory_news.h"
#include "schedule/policy_registry.h"

namespace quadriga {

/// Writes down what it is told, a word each.
class ToldListener final : public ScheduleListener {
 public:
  std::vector<std::string> told;
  std::function<void()> on_end = [] {};

  void issued(PlannedTask&) override { told.emplace_back("issued"); }
  void ended(const EndedTask&) override {
    told.emplace_back("ended");
    on_end();
  }
  void failed(Task&, std::exception_ptr, DeviceId) override { told.emplace_back("failed"); }
  void content_lost(Datum&, std::exception_ptr) override { told.emplace_back("content lost"); }
  void device_lost(DeviceId) override { told.emplace_back("device lost"); }
  void noticed(std::string) override {}
  void marked(DeviceId, Mark mark, TileId, std::uint64_t) override {
    if (mark == Mark::evict) told.emplace_back("evicted");
  }
  void copied(const EndedCopy&, const Completion&) override { told.emplace_back("copied"); }
  void ran(const PlannedTask&, const Completion&) override { told.emplace_back("ran"); }
  void freed(SpaceId, std::byte*, std::size_t) override {}
};

struct NoRunner final : TaskRunner {
  void run(const PlannedTask&, const Arguments&) override {}
};

class SchedulerPartsTest : public ::testing::Test {
 protected:
  struct Operand {
    Datum* datum = nullptr;
    Access access = Access::read;
  };
  struct Loss {
    DeviceId device;
    std::vector<std::string> told;  ///< Before it.
  };

  static constexpr std::size_t tile_bytes = 4096;
  static constexpr std::size_t room = 4;  ///< Tiles of a device's memory.
  // Streams of a device, by its number times five.
  static constexpr StreamId in = 0, out = 1, peer = 2, compute = 3;

  /// `spill_bytes`: of the host's buffers; `links`: how the devices are joined.
  explicit SchedulerPartsTest(std::size_t spill_bytes = SIZE_MAX,
                              const std::string& links = "peer=20GB/s")
      : machine_(Machine::parse("emulated:2,memory=16KiB," + links)),
        memory_(instructions_, machine_, resources(), uses_, news_, {.spill_bytes = spill_bytes}) {
    state_.memory = &memory_;
    codelet_.name = "task";
    codelet_.cpu = [](const Arguments&) {};
    state_.devices.resize(2);
    state_.owners.resize(10);
    for (DeviceState& device : state_.devices) {
      device.id = static_cast<DeviceId>(&device - state_.devices.data());
      device.space = static_cast<SpaceId>(device.id + 1);
      device.streams.push_back({.id = device.id * 5U + compute, .issued = {}});
      device.touched = false;
      state_.owners[device.streams.front().id] = {&device, &device.streams.front()};
    }
    state_.index_spaces();
  }
  Datum& datum() {
    Datum& made = data_.emplace_back();
    made.home = homes_.emplace_back(std::make_unique<std::byte[]>(tile_bytes)).get();
    made.rows = tile_bytes;
    made.ld = tile_bytes;
    made.cols = 1;
    made.tile = memory_.replicas().add({made.home, tile_bytes, 1, tile_bytes, host_space});
    state_.plan.uses().at(made.tile) = {};
    state_.plan.uses().at(made.tile).datum = &made;
    return made;
  }
  /// A task that is placed on a device, and ready there; it `stays` if its submitter says so.
  PlannedTask& ready(std::vector<Operand> operands, DeviceId device = 0, bool stays = false) {
    Task& task = tasks_.emplace_back();
    if (stays) task.device = device;
    task.id = tasks_.size();
    task.codelet = &codelet_;
    task.take_slots(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      OperandSlot& slot = task.slots()[i];
      slot.datum = operands[i].datum;
      slot.access = operands[i].access;
      slot.version = slot.datum->versions;
      if (writes(slot.access)) ++slot.datum->versions;
    }
    groups_.entered(task.group);
    PlannedTask& planned = state_.plan.add(task);
    task.planned = &planned;
    planned.predecessors = Predecessors::done;
    placement_.prediction().begin(planned, {});
    placement_.move(planned, device);
    state_.plan.make_ready(planned);
    return planned;
  }
  PlannedTask& issued(std::vector<Operand> operands, DeviceId device = 0) {
    PlannedTask& planned = ready(std::move(operands), device);
    EXPECT_EQ(launcher_.issue(state_.devices[device], planned).kind, Verdict::Kind::issued);
    return planned;
  }
  /// Of the oldest task of a device: what a scheduler does when its kernel has ended.
  void end_kernel(DeviceId device = 0, const std::exception_ptr& error = nullptr) {
    ComputeStream& stream = state_.devices[device].streams.front();
    PlannedTask& planned = *stream.issued.front().second;
    Launcher::ended(state_.devices[device], stream, planned);
    state_.instructions.ended(planned.done);
    endings_.body_ended(planned, error);
  }
  /// Of all copies among the instructions of a stream.
  void end_copies(StreamId stream, const std::exception_ptr& error = nullptr) {
    std::vector<Instruction> pending(instructions_.pending().begin(),
                                     instructions_.pending().end());
    for (const Instruction& each : pending)
      if (each.stream == stream && each.ticket > seen_[stream]) {
        seen_[stream] = each.ticket;
        EXPECT_TRUE(memory_.completed({.event = {stream, each.ticket}, .error = error}));
      }
  }
  std::size_t pins(const Datum& datum, DeviceId device = 0) {
    return static_cast<std::size_t>(
        memory_.directory().pins(datum.tile, state_.devices[device].space));
  }
  std::size_t count(const std::string& word) const {
    return static_cast<std::size_t>(std::ranges::count(listener_.told, word));
  }
  static std::exception_ptr error(Errc code) {
    return std::make_exception_ptr(Error(code, "planted"));
  }
  std::vector<SpaceResources> resources() {
    return {{},
            {.device = 0,
             .base = arenas_[0].data(),
             .bytes = room * tile_bytes,
             .in = in,
             .out = out,
             .peers = {0, 0, peer}},
            {.device = 1,
             .base = arenas_[1].data(),
             .bytes = room * tile_bytes,
             .in = 5 + in,
             .out = 5 + out,
             .peers = {0, 5 + peer, 0}}};
  }

  alignas(64) std::array<std::array<std::byte, room * tile_bytes>, 2> arenas_;
  std::vector<std::unique_ptr<std::byte[]>> homes_;
  std::deque<Datum> data_;
  std::deque<Task> tasks_;
  std::array<std::uint64_t, 10> seen_{};
  std::vector<Loss> losses_;
  Codelet codelet_;
  Machine machine_;
  Instructions instructions_;
  ToldListener listener_;
  NoRunner runner_;
  ScheduleState state_{machine_, instructions_, listener_};
  std::unique_ptr<CheckedPolicy> policy_ = make_policy("", {machine_, 1});
  PlannedUses uses_{state_};
  MemoryNews news_{state_, recovery_, prefetch_,
                   [this](DeviceState& device, const std::exception_ptr&) {
                     device.lost = true;
                     losses_.push_back({device.id, listener_.told});
                   }};
  Memory memory_;
  Placement placement_{state_, *policy_};
  Pulls pulls_{state_, placement_, *policy_};
  Launcher launcher_{state_, placement_.prediction(), runner_};
  Gangs gangs_{state_, launcher_};
  Recovery recovery_{state_, placement_.feasibility(), launcher_};
  Prefetch prefetch_{state_, *policy_};
  Groups groups_;
  Endings endings_{state_, uses_, {*policy_, recovery_, gangs_, groups_}};
  DeviceTurns turns_{
      state_, {*policy_, placement_, pulls_, launcher_, gangs_, prefetch_, endings_}, 0};
};

}  // namespace quadriga
