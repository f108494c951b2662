// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flat_map.h: a stage that makes several chunks of one, or none.
//
// It is a source within the stream: chunks are split in order, one at a time, and what is made of
// them is asked for while there is room. So the oldest chunk can always go on, however many become
// of it.
//
// Invariants
//   1. All members are the driving thread's; the intake says what is not.
//   2. What it makes has places of its own in the order of those that follow, without gaps.
#pragma once

#include "pipeline/intake.h"
#include "pipeline/sequencer.h"

namespace quadriga {

class FlatMap {
 public:
  FlatMap(const FlowParts& parts, ChunkRouter& router, std::size_t segment, std::size_t most_bytes);

  void add(FlowItem& item);
  void wont_come(std::uint64_t sequence) { in_order_.put(sequence, nullptr); }
  /// Goes on with a chunk, or splits the next one.
  void pump();
  void stop() noexcept { intake_.stop(); }
  std::size_t most_bytes_held() const { return intake_.most_bytes_held(); }

 private:
  bool begin_next();
  void end();

  const FlowParts parts_;
  ChunkRouter& router_;
  const Segment& segment_;
  Intake intake_;
  Sequencer in_order_;
  bool is_open_ = false;  ///< A chunk is being split.
};

}  // namespace quadriga
