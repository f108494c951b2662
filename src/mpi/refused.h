// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/refused.h: calls that don't know memory of devices say so, by their name. An MPI that
// knows no devices would touch it.
#pragma once

#include <cstdio>

#include "mpi/device_buffers.h"
#include "mpi/staged.h"

namespace quadriga::mpi {

/// A buffer of a call. Where it lies, its address tells; that of MPI_BOTTOM, only its parts do,
/// which are asked for then: parts() gives StagedParts.
template <class Parts>
bool touches_device(const void* buffer, const Parts& parts) noexcept {
  if (on_device(buffer)) return true;
  if (buffer != MPI_BOTTOM || device_buffers.load(std::memory_order_relaxed) == nullptr)
    return false;
  try {
    for (const StagedPart& each : parts())
      if (is_on_device(static_cast<const std::byte*>(buffer) + each.offset, each.count, each.type))
        return true;
  } catch (...) {
    // MPI says what is wrong with the type.
  }
  return false;
}
/// The same for elements of one type.
inline bool touches_device(const void* buffer, MPI_Datatype type) noexcept {
  return touches_device(buffer, [&] { return parts_of(1, type); });
}
/// Of a buffer whose type counts on the root alone.
inline bool touches_device(const void* buffer, MPI_Datatype type, int root,
                           MPI_Comm comm) noexcept {
  return touches_device(buffer,
                        [&] { return is_root(comm, root) ? parts_of(1, type) : StagedParts{}; });
}

/// Whether a call is refused, for one of its buffers is a device's; standard error says so then.
inline bool is_refused(const char* name, bool is_device) noexcept {
  if (!is_device) return false;
  std::fprintf(stderr, "quadriga mpi-preload: %s doesn't take memory of a device\n", name);
  return true;
}

/// Raised with a window's own error handler.
inline int raise_of_window(MPI_Win window, int code) noexcept {
  PMPI_Win_call_errhandler(window, code);
  return code;
}

}  // namespace quadriga::mpi
