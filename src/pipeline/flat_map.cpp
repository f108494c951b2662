// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flat_map.cpp: chunks to split, one after the other.
#include "pipeline/flat_map.h"

#include <optional>

namespace quadriga {

FlatMap::FlatMap(const FlowParts& parts, ChunkRouter& router, std::size_t segment,
                 std::size_t most_bytes)
    : parts_(parts),
      router_(router),
      segment_(parts.plan.segments()[segment]),
      intake_(
          parts,
          {most_bytes, segment + 1, segment_.generation + 1,
           parts.plan.stages()[segment_.first].name, parts.plan.stages()[segment_.first].seconds,
           false, "what '" + parts.plan.stages()[segment_.first].name + "' makes (its memory)"},
          parts.stats.of(segment_.first)) {}

void FlatMap::add(FlowItem& item) {
  parts_.stats.of(segment_.first).came();
  in_order_.put(item.sequence, &item);
}

void FlatMap::pump() {
  do {
    if (!is_open_ && !begin_next()) return;
    if (router_.is_unwanted(intake_.next_id())) intake_.close();
    intake_.pump();
    if (intake_.is_over()) end();
  } while (!is_open_);
}

/// False if no chunk is there to be split.
bool FlatMap::begin_next() {
  while (FlowItem* const item = in_order_.take()) {
    parts_.stats.of(segment_.first).began(parts_.engine.now() - item->ready);
    if (router_.is_unwanted(item->chunk.id())) {
      router_.dropped(*item);
    } else if (!item->passed.has(segment_.first)) {
      item->sequence = intake_.take_sequence();
      ++item->generation;
      router_.passed(*item);
    } else {
      intake_.open(parts_.plan.stages()[segment_.first].split, *item);
      return is_open_ = true;
    }
  }
  return false;
}

void FlatMap::end() {
  is_open_ = false;
  std::optional<ChunkFailure> failure;
  if (intake_.error())
    failure = {intake_.failed_id(), parts_.plan.stages()[segment_.first].name, intake_.error()};
  FlowItem& item = *intake_.parent();
  intake_.open(nullptr);  // what it made may hold on to the chunk
  intake_.close();
  router_.split(item, failure);
}

}  // namespace quadriga
