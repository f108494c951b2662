// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_item.h: a chunk on its way, the stages it passes, and what it tells of itself.
#pragma once

#include <quadriga/pipeline.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_access.h"
#include "graph/group.h"
#include "graph/task.h"

namespace quadriga {

class Flow;

enum class StageKind : std::uint8_t { kernel, parallel, serial, serial_in_order };

/// A stage as the user stated it.
struct Stage {
  StageKind kind = StageKind::parallel;
  std::string name;
  const Codelet* codelet = nullptr;  ///< Of a kernel, as its operands.
  FieldUses uses = {};
  Pipeline::Params params = {};
  Pipeline::Body body = {};  ///< On the host.
};

/// A pipeline's options with their defaults filled in.
struct FlowOptions {
  std::size_t memory_bytes = 0;  ///< Of each device; 0: all that tiles may fill.
  std::size_t host_bytes = 0;
  Order order = Order::adaptive;
  OnError on_error = OnError::stop;
  int look_ahead = 64;
  int most_on_device = 3;
  int most_on_link = 0;
  int most_in_all = 0;
  int threads = 1;
};

struct FlowItem;

/// Something that has ended.
struct Mail {
  enum class Kind : std::uint8_t {
    wake,      ///< Look again.
    arrived,   ///< The source gave the chunk.
    host,      ///< A host segment has ended.
    staged,    ///< Its head is on the device.
    computed,  ///< Its kernels have ended.
    left,      ///< Its tail is home.
    source,    ///< The source's task has ended.
  } kind = Kind::wake;
  FlowItem* item = nullptr;
};

/// A field of a chunk while it is an operand on a device.
struct HeldField {
  std::string name;
  Data data;
  bool is_temporary = false;
  bool is_head = false;  ///< Its content comes with the head.
  bool is_tail = false;  ///< Its content goes home with the tail.
  std::atomic<bool> arrived{false};
  std::atomic<bool> is_leaving{false};  ///< Its tail has begun.
  std::atomic<bool> came_early{false};  ///< A copy of it home has ended.
  std::atomic<bool> home{false};

  HeldField(std::string given_name, Data given_data)
      : name(std::move(given_name)), data(given_data) {}
};

/// What a chunk asked of the device that it is on.
struct ItemLoad {
  double bytes_in = 0;
  double bytes_out = 0;
};

/// A chunk, from the source to its end. Its memory stays where it is, and is used again.
struct FlowItem final : CopyWatch {
  Flow* flow = nullptr;
  Chunk chunk;
  std::size_t host_bytes = 0;
  std::size_t segment = 0;
  std::uint32_t slot = 0;
  FlowItem* next = nullptr;  ///< In the chain that one task on the host takes.
  DeviceId device = no_device;
  std::unique_ptr<TaskGroup> group;
  std::vector<std::unique_ptr<HeldField>> held;
  std::atomic<int> heads{0};  ///< Of `held`, that haven't arrived.
  std::atomic<int> tails{0};  ///< That aren't home, once the tail has begun.
  bool has_head = false;
  bool has_tail = false;
  bool is_ahead = false;   ///< Read, and not on a device yet. Guarded by the flow's mutex.
  bool is_let_in = false;  ///< Counted by the admission. Guarded by the flow's mutex.
  std::exception_ptr tail_error;
  std::exception_ptr error;
  std::string failed_stage;
  ItemLoad load;
  bool costs_known = true;
  std::vector<std::vector<std::byte>> params;  ///< Of its kernels, in a row.
  std::vector<double> kernel_seconds;          ///< By device of the stream, where costs are known.
  Nanoseconds read = 0;
  Nanoseconds ready = 0;    ///< Since when it waits for its stage.
  Nanoseconds entered = 0;  ///< When its head began.
  Nanoseconds staged = 0;
  Nanoseconds computed = 0;
  Nanoseconds leaving = 0;

  /// By a thread of the engine's.
  void copied(Datum& datum, SpaceId to, std::exception_ptr failure) noexcept override;
  void field_is_home(HeldField& field) noexcept;
};

}  // namespace quadriga
