// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/level_cuda.cpp: the CUDA variants of a level's codelets, for the four types.
#include <quadriga/error.h>

#include <complex>

#include "sparse/kernels/level_codelets.h"
#include "sparse/kernels/on_stream_cuda.h"

namespace quadriga::sparse {

void add_cuda(LevelCodelets& codelets, const LevelPart& part) {
  const auto of_type = [&]<class T>(T) {
    set_variants<T, OnStream<T>>(codelets, part, &Codelet::cuda);
  };
  switch (part.matrix->shape.dtype) {
    case DType::float32:
      return of_type(float{});
    case DType::float64:
      return of_type(double{});
    case DType::complex64:
      return of_type(std::complex<float>{});
    case DType::complex128:
      return of_type(std::complex<double>{});
    case DType::bytes:
      fail(Errc::internal, "a sparse matrix of bytes");
  }
}

}  // namespace quadriga::sparse
