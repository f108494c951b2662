// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/codelet_parts.h: what the files that define codelets share: families by type,
// views as tiles.
#pragma once

#include "linalg/kernels/blas_threads.h"
#include "linalg/kernels/codelets.h"
#include "linalg/kernels/cuda_variants.h"

#include <quadriga/division.h>
#include <quadriga/error.h>

#include <array>
#include <climits>
#include <cmath>
#include <complex>
#include <initializer_list>
#include <string>

namespace quadriga::kernels {

/// Position of a type in a family; float32, float64, complex64, complex128 are 0 to 3.
inline std::size_t type_index(DType type) {
  require(type <= DType::complex128,
          "linear algebra takes float32, float64, complex64 and complex128, not bytes");
  return static_cast<std::size_t>(type);
}

/// One codelet for each of the four types.
class Family {
 public:
  /// `body` is a generic callable: body.operator()<T>(arguments) is the CPU variant for type T,
  /// which runs unless `divide` adds fine tasks.
  template <class Body>
  Family(const std::string& name, std::initializer_list<Access> signature, Body body,
         Cost (*cost)(const Arguments&), Divide divide = {}) {
    use_one_blas_thread();
    add<float>(0, "s" + name, signature, body, cost);
    add<double>(1, "d" + name, signature, body, cost);
    add<std::complex<float>>(2, "c" + name, signature, body, cost);
    add<std::complex<double>>(3, "z" + name, signature, body, cost);
    for (std::size_t i = 0; i < codelets_.size(); ++i) {
      codelets_[i].cuda = cuda_variant(name, static_cast<DType>(i));
      if (divide) set_division(codelets_[i], divide, Divided::always);
    }
  }
  const Codelet& operator[](DType type) const { return codelets_[type_index(type)]; }

 private:
  template <class T, class Body>
  void add(std::size_t index, const std::string& name, std::initializer_list<Access> signature,
           Body body, Cost (*cost)(const Arguments&)) {
    Codelet& codelet = codelets_[index];
    codelet.name = name;
    codelet.access = signature;
    codelet.cpu = [body](const Arguments& arguments) {
      const BlasCall call;
      body.template operator()<T>(arguments);
    };
    codelet.cost = cost;
  }

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

/// The rows of op(B) that belong to A's columns.
template <class T>
KernelTile<const T> right_factor(const Arguments& arguments, const GemmParams& params) {
  const KernelTile<const T> a = tile<const T>(arguments, 0);
  const KernelTile<const T> b = tile<const T>(arguments, 1);
  if (params.inner < 0) return b;
  const int depth = params.op_a == Op::none ? a.cols : a.rows;
  const bool plain = params.op_b == Op::none;
  require(params.inner + depth <= (plain ? b.rows : b.cols),
          "gemm: A has more columns than op(B) has rows from there on");
  if (plain) return {b.data + params.inner, depth, b.cols, b.ld};
  return {b.column(params.inner), b.rows, depth, b.ld};
}

template <class T>
T value(const Coefficient& scalar) noexcept {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(scalar.real);
  else
    return T(static_cast<typename T::value_type>(scalar.real),
             static_cast<typename T::value_type>(scalar.imag));
}

/// The names of one kernel for the four types.
using Names = std::array<std::string_view, 4>;
inline constexpr Names gemm_names{"sgemm", "dgemm", "cgemm", "zgemm"};
inline constexpr Names syrk_names{"ssyrk", "dsyrk", "csyrk", "zsyrk"};
inline constexpr Names trsm_names{"strsm", "dtrsm", "ctrsm", "ztrsm"};
inline constexpr Names potrf_names{"spotrf", "dpotrf", "cpotrf", "zpotrf"};

/// The cost of a kernel that does `volume` multiplications and additions on operands of one type.
inline Cost cost_of(const Names& names, const Arguments& arguments, double volume) {
  return {names[type_index(arguments.operands[0].dtype)], std::cbrt(volume), volume};
}

/// Moving an element takes about as long as this much of a product's volume, on cores and on GPUs.
inline constexpr double volume_of_a_move = 64;

/// The cost of a kernel that touches each element of its last operand about once.
inline Cost cost_of_elements(const Arguments& arguments) {
  const View& last = arguments.operands.back();
  const double elements = static_cast<double>(last.rows) * static_cast<double>(last.cols);
  return {gemm_names[type_index(arguments.operands[0].dtype)], std::sqrt(elements),
          elements * volume_of_a_move};
}

}  // namespace quadriga::kernels
