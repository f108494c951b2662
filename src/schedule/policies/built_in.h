// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/built_in.h: the policies that are always registered.
#pragma once

#include <quadriga/policy.h>

#include <memory>

namespace quadriga {

std::unique_ptr<Policy> make_affinity(const PolicyContext& context);
std::unique_ptr<Policy> make_steal(const PolicyContext& context);

/// Index of a device among candidates; their number if it is none of them.
std::size_t index_of(std::span<const PlaceCandidate> candidates, DeviceId device);

}  // namespace quadriga
