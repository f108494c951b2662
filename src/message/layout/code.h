// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/code.h: layouts as bytes for another process, and back, all of it checked.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "message/layout/layout.h"

namespace quadriga::message {

/// A layout's canonical form, elements and bounds, in numbers of 8 bytes in this machine's order:
/// 64 bytes, 16 for each stride, 32 for a taper, 16 for each run of a list.
std::vector<std::byte> encoded(const Layout& layout);

/// The layout that was encoded so.
///
/// Nothing in the bytes is believed: numbers are checked before they are used, no more memory is
/// taken than twice what the bytes themselves hold, and what encoded() wouldn't have written is
/// refused, so that equal layouts arrive as equal bytes.
/// Errors:  invalid_argument naming what is wrong.
Layout decoded(std::span<const std::byte> bytes);

}  // namespace quadriga::message
