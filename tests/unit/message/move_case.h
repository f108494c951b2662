// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/move_case.h: pairs of layouts drawn at random whose elements agree.
#pragma once

#include <vector>

#include "base/random.h"
#include "message/layout/layout.h"

namespace quadriga::message {

/// As many elements as a triangle of an order has, in one of several places.
inline Layout draw_places(Random& random, const Layout& element, std::int64_t order) {
  using Numbers = std::vector<std::int64_t>;
  const std::int64_t rows = order % 2 ? order : order / 2, columns = order * (order + 1) / 2 / rows;
  const auto gap = static_cast<std::int64_t>(random.below(20));
  const std::int64_t size = element.bytes(), ld = (columns + gap) * size;
  switch (random.below(6)) {
    case 0:
      return Layout::triangle({.order = order, .leading_dimension = order + gap}, element);
    case 1:
      return Layout::triangle(
          {.order = order, .leading_dimension = order + gap, .half = Half::upper}, element);
    case 2:
      return Layout::vector(rows, columns, columns + gap, element);
    case 3:
      return Layout::vector(rows * columns, 1, 2 + gap, element);
    case 4:
      return Layout::view(Numbers{rows, columns}, Numbers{-ld, size}, element);
    default:
      return Layout::view(Numbers{columns, rows}, Numbers{size, ld}, element);
  }
}

/// Packed bytes `begin` to `end` of two layouts of as many elements.
struct MoveCase {
  Layout from, to;
  std::int64_t begin = 0, end = 0;
};

inline MoveCase draw_move(Random& random, std::int64_t most_order) {
  const ElementType types[] = {ElementType::int8, ElementType::int16, ElementType::float32,
                               ElementType::float64, ElementType::complex128};
  const Layout element = types[random.below(5)];
  const auto order =
      static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(most_order)));
  MoveCase made{draw_places(random, element, order), draw_places(random, element, order)};
  made.end = made.from.bytes();
  if (random.chance(0.5)) {
    const auto all = static_cast<std::uint64_t>(made.end);
    made.begin = static_cast<std::int64_t>(random.below(all));
    made.end = made.begin + 1 + static_cast<std::int64_t>(random.below(all - made.begin));
    if (random.chance(0.7)) made.begin &= ~15;
  }
  return made;
}

}  // namespace quadriga::message
