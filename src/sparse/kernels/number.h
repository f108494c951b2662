// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/number.h: arithmetic of the four types as the kernels need it.
#pragma once

#include <quadriga/types.h>

#include <complex>
#include <cstdint>
#include <type_traits>

namespace quadriga::sparse {

template <class T>
inline constexpr bool is_complex = !std::is_floating_point_v<T>;

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
/// The type of the parts of a number.
template <class T>
using Real = typename RealOf<T>::type;

/// The type's name at run time.
template <class T>
inline constexpr DType dtype_of = is_complex<T> ? (sizeof(T) == sizeof(std::complex<float>)
                                                       ? DType::complex64
                                                       : DType::complex128)
                                                : (sizeof(T) == sizeof(float) ? DType::float32
                                                                              : DType::float64);

/// Real numbers in an element.
template <class T>
inline constexpr std::int64_t parts_of = is_complex<T> ? 2 : 1;

/// x*y by its products, without the detour that std::complex takes for infinities.
template <class T>
constexpr T multiplied(const T& x, const T& y) noexcept {
  if constexpr (is_complex<T>)
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  else
    return x * y;
}

/// A vector of complex numbers as twice as many real ones.
template <class T>
const Real<T>* as_reals(const T* vector) noexcept {
  return reinterpret_cast<const Real<T>*>(vector);
}
template <class T>
Real<T>* as_reals(T* vector) noexcept {
  return reinterpret_cast<Real<T>*>(vector);
}

}  // namespace quadriga::sparse
