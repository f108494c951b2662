// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policy_registry.h: the registry of policies, and making one of them for an engine.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/policy.h>

#include <memory>
#include <string_view>

#include "schedule/checked_policy.h"

namespace quadriga {

/// The policy of a name; empty: affinity. `eviction`: the rule instead of the policy's own, by the
/// name of an Eviction; empty or "policy": the policy's.
/// Errors: invalid_argument naming those registered; what its maker throws.
std::unique_ptr<CheckedPolicy> make_policy(std::string_view name, const PolicyContext& context,
                                           std::string_view eviction = {});

}  // namespace quadriga
