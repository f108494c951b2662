// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/pace.h: how far ahead of devices the scheduler works, and what keeps an idle device
// from taking tasks. Plans that rehearse it (linalg/product_rehearsal.cpp) use the same figures.
#pragma once

#include <cstddef>

namespace quadriga::pace {

/// Tasks issued to a device: two for each stream, or so much work, of so many for each at most.
inline constexpr int tasks_a_stream = 2;
inline constexpr double issued_seconds = 2e-3;
inline constexpr int most_a_stream = 32;
/// What a task counts whose time isn't known: so many for a stream are enough work, as it may be
/// long, and what is issued can't be stolen.
inline constexpr double unknown_seconds = issued_seconds / tasks_a_stream;
/// A device that has fewer tasks left to issue pulls others, if the policy lets them wait: enough
/// that what they need is fetched meanwhile.
inline constexpr std::size_t pulled_ahead = 8;
/// Tasks of another device that an idle one looks at.
inline constexpr std::size_t most_looked = 64;
/// The copies of a task that is taken delay those of others on the links they share.
inline constexpr double crowding = 4;
/// What is written there has to come back for the owner's next task.
inline constexpr double there_and_back = 3;

}  // namespace quadriga::pace
