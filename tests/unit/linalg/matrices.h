// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/matrices.h: engines of all kinds, matrices in all layouts, products by
// definition.
#pragma once

#include <gtest/gtest.h>
#include <quadriga/linalg.h>

#include <complex>
#include <cstring>
#include <random>
#include <vector>

namespace quadriga::linalg::testing {

using Complex = std::complex<double>;

inline constexpr DType all_types[] = {DType::float32, DType::float64, DType::complex64,
                                      DType::complex128};

inline bool is_complex_type(DType dtype) {
  return dtype == DType::complex64 || dtype == DType::complex128;
}
inline double epsilon(DType dtype) {
  return dtype == DType::float32 || dtype == DType::complex64 ? 6e-8 : 1.2e-16;
}

/// A machine of emulated devices with times for every kernel, for the virtual clock.
inline Machine timed_machine(const std::string& devices) {
  Machine machine = Machine::parse(devices);
  for (const char type : {'s', 'd', 'c', 'z'})
    for (const char* const kernel : {"gemm", "syrk", "trsm", "potrf"})
      for (const char* const column : {"emulated", "cpu", ""})
        machine.kernels[type + std::string(kernel)][column] = {{8, 1e-6}, {64, 1e-4}};
  return machine;
}

/// An engine as a test names it: "virtual:" in front means the virtual clock.
inline std::unique_ptr<Engine> make_engine(const std::string& name,
                                           const std::string& policy = "affinity") {
  EngineOptions options;
  options.policy = policy;
  constexpr std::string_view prefix = "virtual:";
  if (name.starts_with(prefix)) {
    options.virtual_clock = true;
    options.machine = timed_machine(name.substr(prefix.size()));
  } else {
    options.devices = name;
  }
  return std::make_unique<Engine>(options);
}

/// How a matrix lies in memory.
enum class Lay { columns, rows, gaps, reversed, every_other };
inline constexpr Lay all_layouts[] = {Lay::columns, Lay::rows, Lay::gaps, Lay::reversed,
                                      Lay::every_other};

/// Of a matrix in memory that the host can read.
inline Complex element_of(const MatrixView& view, std::int64_t i, std::int64_t j) {
  const auto* const p =
      static_cast<const std::byte*>(view.data) +
      (i * view.row_stride + j * view.col_stride) * static_cast<std::int64_t>(size_of(view.dtype));
  switch (view.dtype) {
    case DType::float32:
      return *reinterpret_cast<const float*>(p);
    case DType::float64:
      return *reinterpret_cast<const double*>(p);
    case DType::complex64:
      return Complex(*reinterpret_cast<const std::complex<float>*>(p));
    default:
      return *reinterpret_cast<const Complex*>(p);
  }
}

/// A matrix with its memory. What lies between its elements is NaN, and must stay so.
class Array {
 public:
  Array(std::int64_t rows, std::int64_t cols, DType dtype, Lay lay = Lay::columns)
      : bytes_(static_cast<std::size_t>((rows + 3) * (cols + 3) * 4 + 8) * size_of(dtype)) {
    std::memset(bytes_.data(), 0xff, bytes_.size());
    view_ = {bytes_.data(), rows, cols, 1, rows, dtype};
    if (lay == Lay::rows) view_.row_stride = cols + 2, view_.col_stride = 1;
    if (lay == Lay::gaps) view_.col_stride = rows + 3;
    if (lay == Lay::every_other) view_.row_stride = 2, view_.col_stride = 2 * rows + 1;
    if (lay == Lay::reversed) {
      view_.row_stride = -1;
      view_.col_stride = -rows;
      view_.data = bytes_.data() + static_cast<std::size_t>(rows * cols) * size_of(dtype);
    }
  }
  Array(const Array& other) : bytes_(other.bytes_), view_(other.view_) {
    view_.data = bytes_.data() + (static_cast<std::byte*>(other.view_.data) - other.bytes_.data());
  }
  Array& operator=(const Array&) = delete;

  const MatrixView& view() const { return view_; }
  std::int64_t rows() const { return view_.rows; }
  std::int64_t cols() const { return view_.cols; }

  Complex get(std::int64_t i, std::int64_t j) const { return element_of(view_, i, j); }
  void set(std::int64_t i, std::int64_t j, Complex value) {
    std::byte* const p = place(i, j);
    switch (view_.dtype) {
      case DType::float32:
        *reinterpret_cast<float*>(p) = static_cast<float>(value.real());
        break;
      case DType::float64:
        *reinterpret_cast<double*>(p) = value.real();
        break;
      case DType::complex64:
        *reinterpret_cast<std::complex<float>*>(p) = std::complex<float>(value);
        break;
      default:
        *reinterpret_cast<Complex*>(p) = value;
    }
  }
  bool same_bytes(const Array& other) const { return bytes_ == other.bytes_; }

 private:
  std::byte* place(std::int64_t i, std::int64_t j) const {
    return static_cast<std::byte*>(view_.data) +
           (i * view_.row_stride + j * view_.col_stride) *
               static_cast<std::int64_t>(size_of(view_.dtype));
  }

  std::vector<std::byte> bytes_;
  MatrixView view_;
};

inline Array random_matrix(std::int64_t rows, std::int64_t cols, DType dtype, Lay lay,
                           std::uint64_t seed) {
  Array matrix(rows, cols, dtype, lay);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  for (std::int64_t j = 0; j < cols; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const double real = uniform(random);
      matrix.set(i, j, {real, is_complex_type(dtype) ? uniform(random) : 0});
    }
  }
  return matrix;
}

/// Hermitian and positive definite.
inline Array spd_matrix(std::int64_t order, DType dtype, Lay lay, std::uint64_t seed) {
  Array matrix = random_matrix(order, order, dtype, lay, seed);
  for (std::int64_t j = 0; j < order; ++j) {
    for (std::int64_t i = 0; i < j; ++i) matrix.set(i, j, std::conj(matrix.get(j, i)));
    matrix.set(j, j, matrix.get(j, j).real() + static_cast<double>(order));
  }
  return matrix;
}

inline Complex element(const Array& a, Op op, std::int64_t i, std::int64_t j) {
  if (op == Op::none) return a.get(i, j);
  return op == Op::transpose ? a.get(j, i) : std::conj(a.get(j, i));
}
inline std::int64_t inner_size(const Array& a, Op op) {
  return op == Op::none ? a.cols() : a.rows();
}

/// Element (i, j) of op(A)*op(B).
inline Complex product(const Array& a, Op op_a, const Array& b, Op op_b, std::int64_t i,
                       std::int64_t j) {
  Complex sum = 0;
  for (std::int64_t k = 0; k < inner_size(a, op_a); ++k)
    sum += element(a, op_a, i, k) * element(b, op_b, k, j);
  return sum;
}

inline bool in_triangle(Uplo uplo, std::int64_t i, std::int64_t j) {
  return uplo == Uplo::lower ? i >= j : i <= j;
}

inline Complex complex_of(Coefficient value) { return {value.real, value.imag}; }

/// Whether the BLAS gives the same bits wherever operands lie. OpenBLAS's kernels for processors
/// that it doesn't know don't: they take another way through columns that aren't aligned.
inline bool rounds_alike() {
  static const bool alike = [] {
    const auto engine = make_engine("cpu:1");
    Options options;
    options.tile = 16;
    for (std::int64_t order = 1; order <= 60; ++order)
      for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
        const Array one = spd_matrix(order, DType::float64, Lay::columns, 5);
        const Array other = spd_matrix(order, DType::float64, Lay::gaps, 5);
        for (const Array* const a : {&one, &other})
          cholesky(*engine, a->view(), a->view(), uplo, Other::zero, options);
        for (std::int64_t j = 0; j < order; ++j)
          for (std::int64_t i = 0; i < order; ++i)
            if (one.get(i, j) != other.get(i, j)) return false;
      }
    return true;
  }();
  return alike;
}

/// The same elements: to the bit, or where the BLAS doesn't promise that, within rounding.
inline bool same_elements(const MatrixView& one, const MatrixView& other) {
  const double bound = rounds_alike() ? 0 : 1e4 * epsilon(one.dtype);
  for (std::int64_t j = 0; j < one.cols; ++j)
    for (std::int64_t i = 0; i < one.rows; ++i) {
      const Complex value = element_of(one, i, j);
      if (!(std::abs(value - element_of(other, i, j)) <= bound * (1 + std::abs(value))))
        return false;
    }
  return true;
}

/// The same, and to the bit what lies between the elements.
inline bool same_result(const Array& one, const Array& other) {
  return one.same_bytes(other) || (!rounds_alike() && same_elements(one.view(), other.view()));
}

}  // namespace quadriga::linalg::testing
