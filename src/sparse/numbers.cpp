// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/numbers.cpp: numbers one after the other, independent of the locale.
#include "sparse/numbers.h"

#include <charconv>

namespace quadriga::sparse {
namespace {

constexpr bool is_space(char c) noexcept {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

}  // namespace

NumbersRead read_numbers(std::string_view text, std::span<double> out) noexcept {
  const char* at = text.data();
  const char* const end = at + text.size();
  NumbersRead read;
  while (true) {
    while (at != end && is_space(*at)) ++at;
    if (at == end) return read;
    const char* const begin = at;
    // from_chars takes no plus; a minus behind it is no number.
    if (*at == '+' && at + 1 != end && at[1] != '-') ++at;
    double value = 0;
    const auto [behind, error] = std::from_chars(at, end, value);
    const bool is_number = error == std::errc() && (behind == end || is_space(*behind));
    if (!is_number) {
      read.bad_at = begin - text.data();
      return read;
    }
    if (read.count < static_cast<std::int64_t>(out.size()))
      out[static_cast<std::size_t>(read.count)] = value;
    ++read.count;
    at = behind;
  }
}

}  // namespace quadriga::sparse
