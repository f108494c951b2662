// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/codelet_parts.h: what the modules of kernels share: families by type, views as
// tiles, costs.
#pragma once

#include "linalg/kernels/codelets.h"

#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <complex>

namespace quadriga::kernels {

/// One codelet for each of the four types.
class Family {
 public:
  /// A task runs the host variant unless `spec.divide` adds fine tasks.
  explicit Family(const KernelSpec& spec);
  const Codelet& operator[](DType type) const { return codelets_[type_index(type)]; }

 private:
  std::array<Codelet, 4> codelets_;
};

/// An operand as a tile.
template <class T>
KernelTile<T> tile(const Arguments& arguments, std::size_t operand) {
  const View& view = arguments.operands[operand];
  require(view.rows <= INT_MAX && view.cols <= INT_MAX && view.ld <= INT_MAX,
          "a tile's rows, columns and leading dimension must fit 32 bits");
  return {view.as<T>(), static_cast<int>(view.rows), static_cast<int>(view.cols),
          static_cast<int>(view.ld)};
}

template <class T>
T value(const Coefficient& scalar) noexcept {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(scalar.real);
  else
    return T(static_cast<typename T::value_type>(scalar.real),
             static_cast<typename T::value_type>(scalar.imag));
}

/// The cost of a kernel that does `volume` multiplications and additions on operands of one type.
inline Cost cost_of(const Names& names, const Arguments& arguments, double volume) {
  return {names[type_index(arguments.operands[0].dtype)], std::cbrt(volume), volume};
}

/// Moving an element takes about as long as this much of a product's volume, on cores and on GPUs.
inline constexpr double volume_of_a_move = 64;

/// The cost of a kernel that touches each element of its last operand about once. One of few
/// elements takes what a product of its volume does, which is a launch: at a smaller order's rate
/// it would seem to take as many launches as this volume has multiplications.
inline Cost cost_of_elements(const Arguments& arguments) {
  const View& last = arguments.operands.back();
  const double elements = static_cast<double>(last.rows) * static_cast<double>(last.cols);
  const double volume = elements * volume_of_a_move;
  return {gemm_names[type_index(arguments.operands[0].dtype)],
          std::max(std::sqrt(elements), std::cbrt(volume)), volume};
}

}  // namespace quadriga::kernels
