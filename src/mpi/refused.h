// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/refused.h: calls that don't know memory of devices say so, by their name. An MPI that
// knows no devices would touch it.
#pragma once

#include <cstdio>

#include "mpi/device_buffers.h"
#include "mpi/incoming.h"

namespace quadriga::mpi {

/// Whether a call is refused for one of its buffers; standard error says so then.
inline bool is_refused(const char* name, const void* first, const void* second = nullptr) noexcept {
  if (!on_device(first) && !on_device(second)) return false;
  std::fprintf(stderr, "quadriga mpi-preload: %s doesn't take memory of a device\n", name);
  return true;
}

/// Raised with a window's own error handler.
inline int raise_of_window(MPI_Win window, int code) noexcept {
  PMPI_Win_call_errhandler(window, code);
  return code;
}

}  // namespace quadriga::mpi
