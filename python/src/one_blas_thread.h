// SPDX-License-Identifier: BSD-3-Clause
// python/src/one_blas_thread.h: around every Python body that an engine calls.
#pragma once

namespace quadriga::python {

/// NumPy's and SciPy's BLAS run one thread for as long as one of these lives, since tasks already
/// use all cores. The GIL must be held at its beginning and end.
class OneBlasThread {
 public:
  /// Throws nanobind::python_error if a library can't be limited.
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;
};

}  // namespace quadriga::python
