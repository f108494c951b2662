// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/staged.h: buffers of collectives: a device's pass through the host.
//
// Which ranks pass memory of devices to a collective only they know, and nobody may ask the others:
// a call on the host's memory alone would have to wait for the answer. So each rank gives MPI a
// copy on the host of what lies on its device, and moves what came to the device afterwards.
#pragma once

#include <memory>
#include <vector>

#include "mpi/incoming.h"

namespace quadriga::mpi {

/// Elements within a buffer.
struct StagedPart {
  std::int64_t offset = 0;  ///< In bytes, from the buffer's address.
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};
using StagedParts = std::vector<StagedPart>;

/// Whether collectives look at their buffers: there are devices, or the test mode is on.
bool stages(Function function) noexcept;

/// What MPI gets in place of one buffer of a collective.
class Staged {
 public:
  enum class Use : std::uint8_t { none, read, write, both };
  /// A buffer of the host is passed as it is, but in the test mode, unless it is to stay.
  /// Errors: those of layouts and ports; unavailable if the function is switched off and the buffer
  /// a device's.
  Staged(Function function, const void* buffer, StagedParts parts, Use use,
         bool host_stays = false);

  void* pointer() const noexcept { return pointer_; }
  /// After MPI has ended the call with this code, which it gives back: moves what came to the
  /// device.
  int finish(int code);

 private:
  struct Copy {
    message::MessageBuffer there;
    message::MessageBuffer here;
  };
  void* pointer_ = nullptr;
  Use use_ = Use::none;
  std::unique_ptr<std::byte[]> host_;
  std::vector<Copy> copies_;
};

/// How a result's buffer is used: in place it holds what goes in.
inline Staged::Use result_use(const void* from) noexcept {
  return from == MPI_IN_PLACE ? Staged::Use::both : Staged::Use::write;
}

/// Whether buffers of the host stay where they are in the test mode: a program's own operations may
/// read what lies beside their elements, as those of ScaLAPACK do.
bool needs_neighborhood(MPI_Op operation) noexcept;

std::int64_t extent_of(MPI_Datatype type) noexcept;

// The parts of a buffer, one a rank.
StagedParts parts_of(std::int64_t count, MPI_Datatype type);
template <class Count, class Distance>
StagedParts parts_of(const Count* counts, const Distance* places, MPI_Datatype type, int ranks) {
  const std::int64_t extent = type == MPI_DATATYPE_NULL ? 0 : extent_of(type);
  StagedParts parts;
  for (int i = 0; i < ranks; ++i) parts.push_back({places[i] * extent, counts[i], type});
  return parts;
}
template <class Count, class Distance>
StagedParts parts_of(const Count* counts, const Distance* offsets, const MPI_Datatype* types,
                     int ranks) {
  StagedParts parts;
  for (int i = 0; i < ranks; ++i) parts.push_back({offsets[i], counts[i], types[i]});
  return parts;
}

/// How many ranks a communicator's collectives have parts for: an intercommunicator's are remote.
int partners(MPI_Comm comm) noexcept;
/// Whether this rank is the root.
bool is_root(MPI_Comm comm, int root) noexcept;
/// Sources and destinations of its topology.
struct Neighbors {
  int sources = 0;
  int destinations = 0;
};
Neighbors neighbors(MPI_Comm comm) noexcept;

}  // namespace quadriga::mpi
