// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/words.h: the content of a tile, word by word.
#pragma once

#include <quadriga/codelet.h>

#include <cstdint>
#include <cstring>

namespace quadriga {

/// Calls visit(word) for each of a view's words of four bytes, which it may change.
template <class Visit>
void each_word(const View& view, Visit&& visit) {
  const std::size_t words = static_cast<std::size_t>(view.rows) * size_of(view.dtype) / 4;
  for (std::int64_t col = 0; col < view.cols; ++col) {
    auto* const column =
        view.as<std::byte>() + static_cast<std::size_t>(col * view.ld) * size_of(view.dtype);
    for (std::size_t i = 0; i < words; ++i) {
      std::uint32_t word;
      std::memcpy(&word, column + 4 * i, 4);
      visit(word);
      std::memcpy(column + 4 * i, &word, 4);
    }
  }
}

/// Like each_word(), and touches nothing.
template <class Visit>
void each_word_read(const View& view, Visit&& visit) {
  const std::size_t words = static_cast<std::size_t>(view.rows) * size_of(view.dtype) / 4;
  for (std::int64_t col = 0; col < view.cols; ++col) {
    const auto* const column =
        view.as<const std::byte>() + static_cast<std::size_t>(col * view.ld) * size_of(view.dtype);
    for (std::size_t i = 0; i < words; ++i) {
      std::uint32_t word;
      std::memcpy(&word, column + 4 * i, 4);
      visit(word);
    }
  }
}

}  // namespace quadriga
