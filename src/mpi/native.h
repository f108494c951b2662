// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/native.h: the MPI that is built for, and what differs between MPIs.
//
// All calls of the MPI below go by its profiling names (PMPI_), so that none comes back to us.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <limits>

namespace quadriga::mpi {

// MPICH's own interface, whose header says so as Open MPI's does; any other is MPI 5's common one.
#if defined(MPICH_VERSION) && !defined(MPI_ABI)
#define QUADRIGA_MPICH
#endif

/// A handle as a number: MPICH's are numbers, others' are addresses or look so. Never 0 for a valid
/// one.
template <class Handle>
std::uint64_t number_of(Handle handle) noexcept {
  static_assert(sizeof handle <= sizeof(std::uint64_t));
  std::uint64_t number = 0;
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

template <class Handle>
Handle handle_of(std::uint64_t number) noexcept {
  Handle handle{};
  std::memcpy(&handle, &number, sizeof handle);
  return handle;
}

/// Bytes that a completed receive or a probe reports.
#if defined(OPEN_MPI)
inline std::int64_t bytes_in(const MPI_Status& status) noexcept {
  return static_cast<std::int64_t>(status._ucount);
}
#elif defined(QUADRIGA_MPICH)
inline std::int64_t bytes_in(const MPI_Status& status) noexcept {
  const auto high =
      static_cast<std::uint64_t>(static_cast<unsigned>(status.count_hi_and_cancelled));
  return static_cast<std::int64_t>((high >> 1) << 32 | static_cast<unsigned>(status.count_lo));
}
#else
inline std::int64_t bytes_in(const MPI_Status& status) noexcept {
  MPI_Count bytes = 0;
  PMPI_Get_count_c(&status, MPI_BYTE, &bytes);
  return bytes;
}
#endif

inline void set_bytes(MPI_Status& status, std::int64_t bytes) noexcept {
  PMPI_Status_set_elements_x(&status, MPI_BYTE, bytes);
}

/// Whether a message may end within an element of the receive's datatype.
#if defined(OPEN_MPI)
inline bool receives_parts() noexcept { return true; }
#elif defined(QUADRIGA_MPICH)
inline bool receives_parts() noexcept { return false; }
#else
inline bool receives_parts() noexcept {
  static const bool is_open_mpi = [] {
    char name[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    PMPI_Get_library_version(name, &length);
    return std::strstr(name, "Open MPI") != nullptr;
  }();
  return is_open_mpi;
}
#endif

/// The form of a function that takes the largest counts, and these counts: of MPI 4 on, those are
/// MPI_Count; before, an int.
#if MPI_VERSION >= 4
#define QUADRIGA_WIDE_COUNTS
#define WIDEST(function) function##_c
using WideCount = MPI_Count;
#else
#define WIDEST(function) function
using WideCount = int;
#endif
inline constexpr std::int64_t most_count = std::numeric_limits<WideCount>::max();

/// All but the error, which calls that end one request leave alone.
inline void copy_status(const MPI_Status& from, MPI_Status& to) noexcept {
  const int error = to.MPI_ERROR;
  to = from;
  to.MPI_ERROR = error;
}

/// A message handle that no MPI gives: it stands for a message that we have taken already.
#if defined(QUADRIGA_MPICH)
inline MPI_Message own_message(std::uint32_t index) noexcept {
  // The kind bits of a valid handle are never 01 with these object bits.
  return static_cast<MPI_Message>(0x7d000000U | (index & 0xffffffU));
}
inline bool is_own_message(MPI_Message message) noexcept {
  return (static_cast<unsigned>(message) & 0xff000000U) == 0x7d000000U;
}
inline std::uint32_t index_of(MPI_Message message) noexcept {
  return static_cast<unsigned>(message) & 0xffffffU;
}
#else
// Neither an object's address nor a small number, which is what handles of this width are.
inline constexpr std::uint64_t own_bits = std::uint64_t{0x7d51} << 48;
inline MPI_Message own_message(std::uint32_t index) noexcept {
  static_assert(sizeof(MPI_Message) == sizeof(std::uint64_t));
  return handle_of<MPI_Message>(own_bits | index);
}
inline bool is_own_message(MPI_Message message) noexcept {
  return number_of(message) >> 48 == own_bits >> 48;
}
inline std::uint32_t index_of(MPI_Message message) noexcept {
  return static_cast<std::uint32_t>(number_of(message));
}
#endif

}  // namespace quadriga::mpi
