// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/policy/from_outside.h: policies that the library lacks, for the contract's tests.
#pragma once

#include <quadriga/policy.h>

namespace quadriga {

/// "round_robin".
void register_round_robin();
/// "hostile": random answers, half of them out of range, no prefetches, victims at random; now and
/// then it throws. "silent": it never answers.
void register_hostile();

}  // namespace quadriga
