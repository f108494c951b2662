// SPDX-License-Identifier: BSD-3-Clause
// tests/fuzz/source_location.h: stands in for std::source_location where Clang is too old for it.
#pragma once

#include <source_location>

#if !defined(__cpp_lib_source_location)
#include <cstdint>

namespace std {  // NOLINT: the name that the library lacks.

struct source_location {
  static constexpr source_location current() noexcept { return {}; }
  constexpr uint_least32_t line() const noexcept { return 0; }
  constexpr uint_least32_t column() const noexcept { return 0; }
  constexpr const char* file_name() const noexcept { return ""; }
  constexpr const char* function_name() const noexcept { return ""; }
};

}  // namespace std
#endif
