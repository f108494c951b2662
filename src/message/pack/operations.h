// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/operations.h: MPI's operations on two elements, for the host and for kernels.
#pragma once

#include <type_traits>

#include "message/pack/half.h"

namespace quadriga::message {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// Arithmetic of narrow numbers is done in wider ones; sums of integers wrap.
template <class T>
constexpr auto widened(T value) {
  if constexpr (is_half<T>)
    return value.as_float();
  else if constexpr (std::is_integral_v<T>)
    return static_cast<std::make_unsigned_t<std::common_type_t<T, int>>>(value);
  else
    return value;
}

template <class T>
constexpr auto comparable(T value) {
  if constexpr (is_half<T>)
    return value.as_float();
  else
    return value;
}

struct Sum {
  template <class T>
  static constexpr T of(T a, T b) {
    return static_cast<T>(widened(a) + widened(b));
  }
};
struct Prod {
  template <class T>
  static constexpr T of(T a, T b) {
    return static_cast<T>(widened(a) * widened(b));
  }
};
// What is no number wins, on either side.
struct Min {
  template <class T>
  static constexpr T of(T a, T b) {
    const auto x = comparable(a), y = comparable(b);
    return x < y || x != x ? a : b;
  }
};
struct Max {
  template <class T>
  static constexpr T of(T a, T b) {
    const auto x = comparable(a), y = comparable(b);
    return x > y || x != x ? a : b;
  }
};
struct Land {
  template <class T>
  static constexpr T of(T a, T b) {
    return static_cast<T>((a != T{}) & (b != T{}));
  }
};
struct Lor {
  template <class T>
  static constexpr T of(T a, T b) {
    return static_cast<T>((a != T{}) | (b != T{}));
  }
};
struct Lxor {
  template <class T>
  static constexpr T of(T a, T b) {
    return static_cast<T>((a != T{}) != (b != T{}));
  }
};
struct Band {
  template <class T>
  static constexpr T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Bor {
  template <class T>
  static constexpr T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Bxor {
  template <class T>
  static constexpr T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

}  // namespace quadriga::message
