// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/move.h: codelets that fill tiles from strided memory or sources, and empty them again.
#pragma once

#include "linalg/run.h"

#include <mutex>

namespace quadriga::linalg {

/// Where the elements of tiles come from, and go to. Outlives its tasks.
struct Origin {
  MatrixView view;  ///< Any strides; unused with a source.
  const Source* source = nullptr;
  bool conjugate = false;                 ///< Elements are conjugated on their way, both ways.
  bool transposed = false;                ///< The tiles are those of the source's transpose.
  bool check_finite = false;              ///< Refuse what a source computes that isn't finite.
  mutable std::mutex one_at_a_time = {};  ///< Held while a host_only source reads.
};

/// The tile's first row and column in the matrix that the tiles make up.
struct MoveParams {
  const Origin* origin = nullptr;
  std::int64_t row = 0;
  std::int64_t col = 0;
};

/// Submits the task that computes a tile by a source, on a device where one can: covariances have
/// kernels; other sources run where their code does, on cores and emulated devices.
void submit_compute(Run& run, const MoveParams& params, Data tile, SubmitOptions where);
/// {tile write, order read}: copies it from strided memory; runs on the host. `order` is data that
/// scatter tasks of the same elements write.
const Codelet& gather_codelet();
/// {tile read, order update}: copies it to strided memory; runs on the host.
const Codelet& scatter_codelet();

}  // namespace quadriga::linalg
