// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stage.h: a stage as the user stated it, and the options of a run.
#pragma once

#include <quadriga/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/returned_field.h"

namespace quadriga {

enum class StageKind : std::uint8_t { kernel, parallel, serial, serial_in_order, flat_map };

struct Stage {
  StageKind kind = StageKind::parallel;
  std::string name;
  const Codelet* codelet = nullptr;  ///< Of a kernel, as its operands.
  FieldUses uses = {};
  Pipeline::Params params = {};
  std::vector<ReturnedField> returns = {};  ///< Beside its operands.
  Pipeline::Predicate body = {};            ///< On the host: whether the chunk goes on.
  Pipeline::Split split = {};               ///< Of a flat_map.
  Lending lending = Lending::fresh;         ///< The same.
  std::size_t most_bytes = 0;               ///< On their way, of what it makes; 0: a share.
  Pipeline::Seconds seconds = {};           ///< Of a chunk, on the host.
};

struct FlowOptions {
  std::size_t memory_bytes = 0;  ///< Of each device; 0: all that tiles may fill.
  std::size_t host_bytes = 0;
  Order order = Order::adaptive;
  OnError on_error = OnError::raise;
  OnFull on_full = OnFull::wait;
  int look_ahead = 64;
  int most_on_device = 0;  ///< 0: what a device can use.
  int most_on_link = 0;
  int most_in_all = 0;
  int threads = 1;
  Pipeline::Seconds source_seconds = {};
  /// Of an indexed source: of all chunks. Null: unknown.
  std::shared_ptr<const std::vector<double>> sizes = {};
};

}  // namespace quadriga
