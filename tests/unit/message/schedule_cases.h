// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/schedule_cases.h: random clusters and collectives, and schedules carried out
// with data, one step at a time in any order that they permit.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "message/schedules/steps.h"
#include "message/schedules/tree_choice.h"

namespace quadriga::message::testing {

/// Nodes, switches and devices at random, ranks anywhere on them.
Cluster draw_cluster(Random& random);
CollectiveShape draw_shape(Random& random, const Cluster& cluster);
TreeOptions draw_options(Random& random);

/// Bytes by rank and buffer.
using RankMemory = std::vector<std::byte>;
struct CarriedOut {
  std::vector<RankMemory> output;
  std::string fault;  ///< Why it stopped; empty if it did not.
};
/// Takes steps at random. What is being received is spoilt until it is there, and what is sent is
/// read at the last moment. `outputs` is what is there before, if anything is. Reductions add
/// bytes; or, if `in_order`, mix them so that the order of the operands shows.
CarriedOut carry_out(Random& random, const Schedule& schedule, std::vector<RankMemory> input,
                     const std::vector<std::size_t>& output_bytes, std::vector<RankMemory> outputs,
                     bool in_order = false);

}  // namespace quadriga::message::testing
