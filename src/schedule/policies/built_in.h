// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/built_in.h: the policies that are always registered.
#pragma once

#include <quadriga/policy.h>

#include <memory>

namespace quadriga {

std::unique_ptr<Policy> make_affinity(const PolicyContext& context);
std::unique_ptr<Policy> make_data_first(const PolicyContext& context);
std::unique_ptr<Policy> make_earliest_finish(const PolicyContext& context);
std::unique_ptr<Policy> make_steal(const PolicyContext& context);
std::unique_ptr<Policy> make_weight(const PolicyContext& context);

/// Index of a device among candidates; their number if it is none of them.
std::size_t index_of(std::span<const PlaceCandidate> candidates, DeviceId device);
/// Index of the device or worker with most to do; Policy::none if none has any.
std::size_t most_queued(std::span<const double> queued);
/// Index of the task that ends sooner by so much where it is taken to, as far as its time is known;
/// Policy::none if none does.
std::size_t greatest_gain(std::span<const StealCandidate> candidates);

}  // namespace quadriga
