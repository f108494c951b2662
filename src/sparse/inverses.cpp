// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/inverses.cpp: Gauss-Jordan elimination of a matrix beside the identity.
#include "sparse/inverses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace quadriga::sparse {
namespace {

constexpr int most_rows = 4;

bool is_finite(double x) noexcept { return std::isfinite(x); }
bool is_finite(const std::complex<double>& x) noexcept {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

template <class Wide>
using WideRows = std::array<std::array<Wide, 2 * most_rows>, most_rows>;

template <class Wide>
bool eliminate(WideRows<Wide>& rows, int size) noexcept {
  for (int k = 0; k < size; ++k) {
    int pivot = k;
    for (int i = k + 1; i < size; ++i)
      if (std::abs(rows[i][k]) > std::abs(rows[pivot][k])) pivot = i;
    if (!(std::abs(rows[pivot][k]) > 0)) return false;
    std::swap(rows[k], rows[pivot]);
    const Wide inverse = Wide(1) / rows[k][k];
    for (int j = 0; j < 2 * size; ++j) rows[k][j] *= inverse;
    for (int i = 0; i < size; ++i) {
      if (i == k) continue;
      const Wide factor = rows[i][k];
      for (int j = 0; j < 2 * size; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  return true;
}

template <class Wide, class T>
bool invert_as(T* matrix, int size) noexcept {
  WideRows<Wide> rows{};
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) rows[i][j] = Wide(matrix[i * size + j]);
    rows[i][size + i] = Wide(1);
  }
  if (!eliminate(rows, size)) return false;
  bool all_finite = true;
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j) {
      const Wide value = rows[i][size + j];
      all_finite = all_finite && is_finite(value);
      matrix[i * size + j] = static_cast<T>(value);
    }
  return all_finite;
}

}  // namespace

bool invert(float* matrix, int size) noexcept { return invert_as<double>(matrix, size); }
bool invert(double* matrix, int size) noexcept { return invert_as<double>(matrix, size); }
bool invert(std::complex<float>* matrix, int size) noexcept {
  return invert_as<std::complex<double>>(matrix, size);
}
bool invert(std::complex<double>* matrix, int size) noexcept {
  return invert_as<std::complex<double>>(matrix, size);
}

}  // namespace quadriga::sparse
