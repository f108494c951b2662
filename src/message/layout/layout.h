// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/layout.h: what a layout is made of: its canonical form and its elements.
#pragma once

#include <quadriga/message_layout.h>

#include <atomic>
#include <utility>

#include "message/layout/element.h"
#include "message/layout/form.h"

namespace quadriga::message {

// from_parts() takes parts that were checked, as they were encoded (layout/code.h);
// check_same_elements() raises invalid_argument naming both unless the signatures are equal.
struct Layout::Parts {
  Canonical form;
  ElementSignature elements;
  std::int64_t lower = 0;
  std::int64_t extent = 0;
  std::int64_t bytes = 0;
  std::pair<std::int64_t, std::int64_t> bounds;
  /// Unknown, no, yes: found out when first asked.
  mutable std::atomic<signed char> overlap{-1};
};

/// Elements that lie together. Each thread keeps those that it used last, since messages of one
/// size are sent again and again.
Layout contiguous_layout(std::int64_t count, ElementType type);

}  // namespace quadriga::message
