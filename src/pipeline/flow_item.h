// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_item.h: a chunk on its way, and what it is while it is on a device.
#pragma once

#include <quadriga/pipeline.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_access.h"
#include "graph/group.h"
#include "graph/task.h"
#include "pipeline/load.h"
#include "pipeline/mailbox.h"
#include "pipeline/stage_plan.h"

namespace quadriga {

/// A field of a chunk while it is an operand on a device.
struct HeldField {
  Data data;                           ///< Null as long as the size of a returned field is unknown.
  std::atomic<Datum*> datum{nullptr};  ///< Of `data`, for threads of the engine.
  bool is_head = false;                ///< Its content comes with the head.
  bool is_tail = false;                ///< Its content goes home with the tail.
  std::atomic<bool> arrived{false};
  std::atomic<bool> is_leaving{false};  ///< Its tail has begun.
  std::atomic<bool> came_early{false};  ///< A copy of it home has ended.
  std::atomic<bool> is_lost{false};     ///< Its content, with a device; `loss` says why.
  std::exception_ptr loss;              ///< Written before `is_lost`.
  std::atomic<bool> home{false};        ///< There, or lost: nothing more is told of it.

  HeldField(Data given, bool comes, bool goes) : is_head(comes), is_tail(goes) { hold(given); }
  void hold(Data given) {
    data = given;
    datum.store(EngineAccess::datum(given));
  }
};

/// A chunk's time on devices, from the queue in front of them to the end of its tail.
struct DeviceStay {
  std::uint32_t slot = 0;  ///< The dispatch's name for it.
  DeviceId device = no_device;
  bool has_head = false;
  bool has_tail = false;
  std::unique_ptr<TaskGroup> group;
  std::vector<std::unique_ptr<HeldField>> held;  ///< By field of the row.
  std::atomic<int> heads{0};                     ///< Of `held`, that haven't arrived.
  std::atomic<int> tails{0};                     ///< That aren't home, once the tail has begun.
  int losses = 0;                                ///< Devices that were lost while it was there.
  /// Of kernels that add to results of all chunks, by stage, since it entered the device.
  std::vector<std::pair<std::size_t, Future>> adding;
  std::vector<std::size_t> added;  ///< Stages that added it on devices that were lost later.
  ChunkLoad load;
  std::vector<std::vector<std::byte>> params;  ///< Of its kernels, in a row, as far as known.
  std::size_t next_kernel = 0;                 ///< Of the row, that hasn't been submitted.
  std::size_t taken = 0;                       ///< Kernels whose returned fields are known.
  Nanoseconds entered = 0;                     ///< When its head began.
  Nanoseconds staged = 0;
  Nanoseconds computed = 0;
  Nanoseconds leaving = 0;
};

/// A chunk, from the source to its end. Its memory stays where it is, and is used again.
struct FlowItem final : CopyWatch {
  FlowItem(Mailbox& mailbox, Intake& intake) : mail(mailbox), home(intake) {}

  Mailbox& mail;
  Intake& home;                ///< Where its memory comes from and goes to.
  FlowItem* parent = nullptr;  ///< What it was made of, which lives as long.
  std::atomic<int> users{1};   ///< Itself, and what was made of it.
  Chunk chunk;
  std::uint64_t sequence = 0;  ///< Its place in the order of its generation.
  std::size_t generation = 0;  ///< How many flat_maps made it.
  StageSet passed;             ///< By its own list.
  bool is_filtered = false;    ///< A filter has dropped it.
  std::size_t host_bytes = 0;
  std::size_t segment = 0;
  FlowItem* next = nullptr;         ///< In the chain that one task on the host takes.
  bool ends_task = false;           ///< It is the last of these.
  std::unique_ptr<TaskGroup> time;  ///< A task that takes what was stated of its segment.
  bool is_ahead = false;            ///< Read, and not on a device yet. Guarded by the intake.
  bool is_let_in = false;           ///< Counted by the admission. Guarded by the intake.
  std::exception_ptr error;
  std::string failed_stage;
  Nanoseconds read = 0;
  Nanoseconds ready = 0;  ///< Since when it waits for its stage.
  DeviceStay stay;

  /// The first failure counts.
  void fail(std::exception_ptr what, const std::string& stage) {
    if (error) return;
    error = std::move(what);
    failed_stage = stage;
  }
  /// By a thread of the engine's.
  void copied(Datum& datum, SpaceId to, std::exception_ptr failure) noexcept override;
  void lost(HeldField& field, std::exception_ptr failure) noexcept;
  void field_is_home(HeldField& field) noexcept;
};

}  // namespace quadriga
