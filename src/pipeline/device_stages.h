// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/device_stages.h: chunks on devices: copies in, kernels in a row, copies out.
//
// The dispatch decides which chunk goes where, and when its results go home; this carries it out as
// data and tasks of the engine.
//
// A row of kernels is submitted in steps: all kernels up to one that returns a field, whose size
// the next ones need. The dispatch sees one chunk with kernels to come, whatever its steps.
//
// Where a device is lost, the engine runs what it can elsewhere. A chunk whose tasks failed all the
// same, or whose results were lost, begins again on another device as long as nothing has
// overwritten its input. What it has added to a result of all chunks is not added again.
//
// Invariants
//   1. All members are the driving thread's. Threads of the engine touch a chunk's DeviceStay by
//      FlowItem::copied() alone: atomics, and `held`, which stands still from the first submission
//      until the data are removed.
//   2. A chunk's data are removed from the engine before its memory goes to anybody else.
//   3. A chunk is the dispatch's from begin() until it is handed to the router.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/device_parts.h"
#include "pipeline/dispatch.h"
#include "pipeline/flow_parts.h"

namespace quadriga {

class DeviceStages {
 public:
  /// Errors: unavailable if no device runs all kernels; too_large if constants don't fit.
  DeviceStages(const FlowParts& parts, ChunkRouter& router);
  /// The run has ended. Errors are the engine's: its own calls tell them.
  ~DeviceStages();
  DeviceStages(const DeviceStages&) = delete;
  DeviceStages& operator=(const DeviceStages&) = delete;

  /// By the dispatch's numbering.
  const std::vector<DeviceId>& devices() const noexcept { return devices_; }
  /// The chunk waits for a device.
  void begin(FlowItem& item);
  /// Carries out what the dispatch decides.
  void pump();
  /// No chunk will come any more.
  void close() noexcept { dispatch_->close(); }
  /// Whether chunks come as the order takes them.
  void expect_order(bool is_expected) noexcept { dispatch_->expect_order(is_expected); }
  void set_order(Order order) noexcept { dispatch_->set_order(order); }
  /// All chunks have passed: their results of all devices. Errors: of a kernel that failed.
  void combine() { device_parts_.combine(); }
  const std::map<std::string, View>& reduced() const noexcept { return device_parts_.results(); }

  // What has ended.
  void staged(FlowItem& item);
  void computed(FlowItem& item);
  void left(FlowItem& item);

 private:
  struct Constant {
    Data data;
    View view;
  };

  void add_constants();
  void open(const std::vector<DeviceId>& usable);
  const KernelRow& row_of(const FlowItem& item);
  std::size_t first_of(const FlowItem& item) const {
    return parts_.plan.segments()[item.segment].first;
  }
  void enter(FlowItem& item, DeviceId device);
  void staged_now(DeviceStay& stay);
  void hold_fields(FlowItem& item, const KernelRow& row);
  std::vector<Operand> operands_of(const FlowItem& item, const KernelRow::Kernel& kernel);
  void begin_step(FlowItem& item);
  void submit_step(FlowItem& item, const KernelRow& row);
  Future submit(FlowItem& item, const Codelet& codelet, std::span<const Operand> operands,
                std::span<const std::byte> params);
  bool continue_row(FlowItem& item);
  bool take_returned(FlowItem& item, const KernelRow& row, const KernelRow::Kernel& kernel);
  void hold_returned(FlowItem& item, const KernelRow& row, std::size_t field);
  void drop_replaced(FlowItem& item, const KernelRow& row, const std::string& name,
                     std::size_t before);
  void leave(FlowItem& item);
  void notice_losses();
  bool has_input(const FlowItem& item);
  bool run_again(FlowItem& item);
  void abandon(FlowItem& item);
  void release(FlowItem& item);
  void remove_data();

  const FlowParts parts_;
  ChunkRouter& router_;
  /// By segment and which of its kernels are passed; empty: all.
  std::map<std::pair<std::size_t, std::vector<bool>>, KernelRow> rows_;
  std::map<std::string, Constant> constants_;
  DeviceParts device_parts_;
  std::vector<DeviceId> devices_;
  std::vector<bool> lost_;  ///< By the dispatch's numbering.
  std::optional<Dispatch> dispatch_;
  std::vector<FlowItem*> by_slot_;
  std::vector<Data> leaving_;  ///< Of chunks that have left, removed all at once.
};

}  // namespace quadriga
