// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/level_cuda.cpp: the CUDA variants of a level's codelets, for the four types.

#include "base/number_type.h"
#include "sparse/kernels/level_codelets.h"
#include "sparse/kernels/on_stream_cuda.h"

namespace quadriga::sparse {

void add_cuda(LevelCodelets& codelets, const LevelPart& part) {
  with_number_type(part.matrix->shape.dtype, [&]<class T>() {
    set_variants<T, OnStream<T>>(codelets, part, &Codelet::cuda);
  });
}

}  // namespace quadriga::sparse
