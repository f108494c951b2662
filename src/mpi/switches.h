// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/switches.h: what of MPI is taken over, and what is counted of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace quadriga::mpi {

/// What can be switched off by name. A rank that switches off a receive or a probe, which are the
/// last ones, gets no envelopes: MPI matches any of them to any message.
enum class Function : std::uint8_t {
  send,
  ssend,
  rsend,
  isend,
  issend,
  irsend,
  send_init,
  ssend_init,
  rsend_init,
  sendrecv,
  sendrecv_replace,
  pack,
  unpack,
  bcast,
  reduce,
  allreduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  exscan,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  alltoallw,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
  isendrecv,
  isendrecv_replace,
  recv,
  irecv,
  recv_init,
  mrecv,
  imrecv,
  probe,
  iprobe,
  mprobe,
  improbe,
};
inline constexpr std::size_t functions = static_cast<std::size_t>(Function::improbe) + 1;
/// Without MPI_, as "Send_init".
const char* name(Function function) noexcept;

/// What QUADRIGA_MPI_* say of this process.
struct Switches {
  bool off = false;          ///< The library does nothing.
  bool host = false;         ///< Test mode: host buffers go our way, too.
  bool emulated = false;     ///< quadriga_emulated_malloc() gives memory like a device's.
  bool cuda = true;          ///< Memory of CUDA devices is taken over.
  bool counters = false;     ///< MpiCounters are printed at MPI_Finalize.
  std::size_t small = 8192;  ///< Messages of ours up to so many bytes go by MPI.
  std::array<bool, functions> disabled{};
  bool takes(Function function) const noexcept {
    return !disabled[static_cast<std::size_t>(function)];
  }
  /// Whether all receives and probes are.
  bool takes_receives() const noexcept;
};
/// Reads the environment. Errors: invalid_argument naming the variable and what it accepts.
Switches read_switches();

/// Errors: unavailable, always.
[[noreturn]] void fail_switched_off(Function function);

/// What happened, for the line at MPI_Finalize. Only ever counted up.
struct MpiCounters {
  std::atomic<std::uint64_t> sent{0};        ///< Messages by envelope,
  std::atomic<std::uint64_t> sent_bytes{0};  ///< and their bytes.
  std::atomic<std::uint64_t> received{0};    ///< Envelopes whose payload was fetched.
  std::atomic<std::uint64_t> small{0};       ///< Messages from a device that MPI carried.
  std::atomic<std::uint64_t> copied{0};      ///< Payloads copied aside: receivers were late.
  std::atomic<std::uint64_t> looked_at{0};   ///< Messages received early, for a probe.
  std::atomic<std::uint64_t> packed{0};      ///< Calls of Pack and Unpack.
  std::atomic<std::uint64_t> staged{0};      ///< Buffers of collectives that passed the host.
  std::atomic<std::uint64_t> together{0};    ///< Collectives of devices by us, on each rank.
};
inline constexpr std::size_t counter_count = 9;
std::array<std::uint64_t, counter_count> values_of(const MpiCounters& counters) noexcept;
/// One line for all ranks' sums.
std::string text_of(const std::array<std::uint64_t, counter_count>& sums, int ranks, int with);

inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace quadriga::mpi
