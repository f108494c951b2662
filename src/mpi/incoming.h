// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/incoming.h: a receive: what MPI is given for it, and what becomes of what arrives.
#pragma once

#include <memory>
#include <vector>

#include "mpi/device_buffers.h"
#include "mpi/mpi_envelope.h"

namespace quadriga::mpi {

/// Between the begin of a receive and its end. MPI receives into the program's buffer, unless that
/// is a device's, or the MPI couldn't receive an envelope by its datatype; an envelope lands there
/// too, and is replaced by its payload.
class Incoming {
 public:
  Incoming() = default;
  /// A buffer of the host costs nothing here: its type is asked for only if an envelope comes.
  Incoming(void* buffer, std::int64_t count, MPI_Datatype datatype);

  /// For a receive that ends in a later call, before which the program may free the type's handle.
  void outlive_type();

  // What MPI receives into.
  void* buffer() const noexcept { return bounce_ ? bounce_.get() : into_.buffer; }
  WideCount count() const noexcept {
    return bounce_ ? bounce_count_ : static_cast<WideCount>(into_.count);
  }
  MPI_Datatype datatype() const noexcept { return bounce_ ? bounce_type_ : datatype_; }

  /// After MPI has received: fetches, or moves a device's bytes there; MPI's error code. The
  /// status tells what the program is to see.
  int finish(MPI_Status& status) noexcept {
    if (bytes_in(status) == envelope_bytes || bounce_) [[unlikely]]
      return finish_taken(status);
    return MPI_SUCCESS;
  }
  /// For bytes that were received before: of an envelope, or as they are.
  int finish_early(const MpiEnvelope& content, MPI_Status& status) noexcept;

 private:
  void keep_type() {
    if (!into_.type && datatype_ != MPI_DATATYPE_NULL) into_.type = datatype_of(datatype_);
  }
  int finish_taken(MPI_Status& status) noexcept;
  int fetch_into(const MpiEnvelope& envelope, MPI_Status& status) noexcept;
  int unpack(const std::byte* packed, std::int64_t bytes) noexcept;

  Destination into_;
  MPI_Datatype datatype_ = MPI_DATATYPE_NULL;
  std::unique_ptr<std::byte[]> bounce_;
  WideCount bounce_count_ = 0;
  MPI_Datatype bounce_type_ = MPI_BYTE;
};

/// Whether a buffer's lowest element is a device's. False if the datatype is none.
bool is_on_device(const void* buffer, std::int64_t count, MPI_Datatype datatype);
/// Errors: unavailable if the function is switched off and the buffer a device's.
inline void check_switch(Function function, const void* buffer, std::int64_t count,
                         MPI_Datatype datatype) {
  if (!world->switches.takes(function) && is_on_device(buffer, count, datatype))
    fail_switched_off(function);
}

/// Raises an error as MPI does; gives the code back.
inline int raise(MPI_Comm comm, int code) noexcept {
  if (code != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm, code);
  return code;
}

/// The body of a call: nothing thrown leaves it.
template <class Body>
int guarded(MPI_Comm comm, const Body& body) noexcept {
  try {
    return body();
  } catch (...) {
    return raise(comm, code_of_exception());
  }
}

/// Where MPI writes the status: also if the program doesn't want it.
inline MPI_Status* wanted(MPI_Status* given, MPI_Status& own) noexcept {
  return given == MPI_STATUS_IGNORE ? &own : given;
}

}  // namespace quadriga::mpi
