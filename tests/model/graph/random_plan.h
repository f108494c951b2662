// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/random_plan.h: random events on the plan, beside a plain model of it.
#pragma once

#include <cstdint>
#include <string>

namespace quadriga {

/// Submits, places, steals, readies, issues and ends tasks on several devices, moves tiles in and
/// out of their memories, and asks after next uses, orders and fetches what a look at every task
/// says. Returns what was wrong first; empty if nothing was. With `many` tasks more are placed than
/// the lookahead has in sight.
std::string run_random_plan(std::uint64_t seed, bool many);

}  // namespace quadriga
