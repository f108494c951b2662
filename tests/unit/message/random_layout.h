// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/random_layout.h: layouts drawn at random beside the plain list of their
// elements, which is made without the library.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "message/layout/layout.h"

namespace quadriga::message {

/// An element and where it is.
struct PlainElement {
  std::int64_t offset = 0;
  ElementType type = ElementType::bytes;
};

/// What a layout means: its elements one by one.
struct PlainLayout {
  std::vector<PlainElement> elements;
  std::int64_t lower = 0;
  std::int64_t extent = 0;
};

/// The same layout twice, and how it was made.
struct DrawnLayout {
  Layout layout;
  PlainLayout plain;
  std::string text;
};

/// A layout of up to `depth` makers inside each other and a few hundred elements.
DrawnLayout draw_layout(Random& random, int depth);

/// Runs of single elements, in order.
std::vector<ByteRun> plain_runs(const PlainLayout& plain);
ElementSignature plain_signature(const PlainLayout& plain);
std::vector<std::byte> plain_pack(const PlainLayout& plain, const std::byte* data);

/// What is wrong with a drawn layout's form, bounds, signature or overlap; empty if nothing is.
std::string layout_fault(const DrawnLayout& drawn);

}  // namespace quadriga::message
