// SPDX-License-Identifier: BSD-3-Clause
// tests/fuzz/input.h: numbers and bytes from what libFuzzer gives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace quadriga::message {

/// Takes numbers off the input; zeros behind its end.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool ended() const noexcept { return bytes_.empty(); }
  template <class Number>
  Number take() noexcept {
    Number number{};
    fill(std::as_writable_bytes(std::span(&number, 1)));
    return number;
  }
  /// As many as there are; the others stay.
  void fill(std::span<std::byte> into) noexcept {
    const std::size_t count = std::min(into.size(), bytes_.size());
    if (count > 0) std::memcpy(into.data(), bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace quadriga::message
