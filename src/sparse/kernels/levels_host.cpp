// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/levels_host.cpp: what a smoother does with the vectors of a level.
#include "sparse/kernels/host_sums.h"

namespace quadriga::sparse {
namespace {

template <class T>
void smooth(const PartArrays<T>& a, const PartVectors<T>& v, const Relaxation& relaxation) {
  const Inverses<T> m(a);
  const auto momentum = static_cast<Real<T>>(relaxation.momentum);
  const auto weight = static_cast<Real<T>>(relaxation.weight);
  for (std::int64_t row = 0; row < a.shape().rows; ++row)
    for (std::int64_t c = 0; c < v.columns; ++c) {
      const std::int64_t at = row * v.columns + c;
      T d = m.times(v.s, v.columns, row, c) * weight;
      // What is not yet known may be NaN.
      if (momentum != 0) d += v.d[at] * momentum;
      v.d[at] = d;
      v.z[at] = relaxation.is_first ? d : v.z[at] + d;
    }
}

}  // namespace

template <class T>
void relax(const PartArrays<T>& a, const PartVectors<T>& v, const Relaxation& relaxation) {
  if (relaxation.subtracts)
    for (std::int64_t at = 0; at < a.shape().rows * v.columns; ++at) v.s[at] -= v.q[at];
  if (relaxation.smooths) smooth(a, v, relaxation);
}

template <class T>
void correct(std::int64_t rows, const PartVectors<T>& v) {
  for (std::int64_t at = 0; at < rows * v.columns; ++at) v.z[at] += v.d[at];
}

template <class T>
void sum_products(const PartShape& shape, const PartVectors<T>& v, double* sums) {
  for (std::int64_t block = 0; block < shape.blocks; ++block)
    for (std::int64_t c = 0; c < v.columns; ++c)
      sums[block * v.columns + c] = dot(rows_in(shape, block), v.r, v.z, v.columns, c);
}

#define QUADRIGA_INSTANTIATE(T)                                                        \
  template void relax(const PartArrays<T>&, const PartVectors<T>&, const Relaxation&); \
  template void correct(std::int64_t, const PartVectors<T>&);                          \
  template void sum_products(const PartShape&, const PartVectors<T>&, double*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse
