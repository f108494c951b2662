// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/switches.cpp: reads QUADRIGA_MPI_*, and puts counters into words.
#include "mpi/switches.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/config.h"
#include "base/units.h"
#include "mpi/mpi_envelope.h"

namespace quadriga::mpi {
namespace {

constexpr std::array<const char*, functions> names{"Send",
                                                   "Ssend",
                                                   "Rsend",
                                                   "Isend",
                                                   "Issend",
                                                   "Irsend",
                                                   "Send_init",
                                                   "Ssend_init",
                                                   "Rsend_init",
                                                   "Sendrecv",
                                                   "Sendrecv_replace",
                                                   "Pack",
                                                   "Unpack",
                                                   "Bcast",
                                                   "Reduce",
                                                   "Allreduce",
                                                   "Reduce_scatter",
                                                   "Reduce_scatter_block",
                                                   "Scan",
                                                   "Exscan",
                                                   "Gather",
                                                   "Gatherv",
                                                   "Scatter",
                                                   "Scatterv",
                                                   "Allgather",
                                                   "Allgatherv",
                                                   "Alltoall",
                                                   "Alltoallv",
                                                   "Alltoallw",
                                                   "Neighbor_allgather",
                                                   "Neighbor_allgatherv",
                                                   "Neighbor_alltoall",
                                                   "Neighbor_alltoallv",
                                                   "Neighbor_alltoallw",
                                                   "Isendrecv",
                                                   "Isendrecv_replace",
                                                   "Recv",
                                                   "Irecv",
                                                   "Recv_init",
                                                   "Mrecv",
                                                   "Imrecv",
                                                   "Probe",
                                                   "Iprobe",
                                                   "Mprobe",
                                                   "Improbe"};

void disable(Switches& switches, std::string_view list) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (word.starts_with("MPI_")) word.remove_prefix(4);
    const auto found =
        std::ranges::find(names, word, [](const char* each) { return std::string_view(each); });
    if (found == names.end())
      fail(Errc::invalid_argument,
           fmt::format("QUADRIGA_MPI_WITHOUT: '{}' can't be switched off; expected some of {}",
                       word, fmt::join(names, ", ")));
    switches.disabled[static_cast<std::size_t>(found - names.begin())] = true;
  }
}

bool flag(const std::string& name, const std::string& value) {
  if (value == "1" || value == "true" || value == "on" || value == "yes") return true;
  if (value.empty() || value == "0" || value == "false" || value == "off" || value == "no")
    return false;
  fail(Errc::invalid_argument, fmt::format("{}={}: expected 1 or 0", name, value));
}

// An envelope must fit the buffer of any receive that it comes to.
std::size_t least_small(const std::string& value) {
  const std::size_t bytes = parse_bytes(value);
  if (bytes < envelope_bytes)
    fail(Errc::invalid_argument,
         fmt::format("QUADRIGA_MPI_SMALL={}: expected at least {} bytes, which an envelope takes",
                     value, envelope_bytes));
  return bytes;
}

}  // namespace

const char* name(Function function) noexcept { return names[static_cast<std::size_t>(function)]; }

bool Switches::takes_receives() const noexcept {
  const auto first = disabled.begin() + static_cast<std::ptrdiff_t>(Function::recv);
  return std::none_of(first, disabled.end(), [](bool each) { return each; });
}

void fail_switched_off(Function function) {
  fail(Errc::unavailable,
       fmt::format("MPI_{} of a device's memory is switched off", name(function)));
}

Switches read_switches() {
  Switches made;
  for (const auto& [name, value] : mpi_variables()) {
    if (name == "QUADRIGA_MPI_OFF")
      made.off = flag(name, value);
    else if (name == "QUADRIGA_MPI_HOST")
      made.host = flag(name, value);
    else if (name == "QUADRIGA_MPI_EMULATED")
      made.emulated = flag(name, value);
    else if (name == "QUADRIGA_MPI_CUDA")
      made.cuda = flag(name, value);
    else if (name == "QUADRIGA_MPI_COUNTERS")
      made.counters = flag(name, value);
    else if (name == "QUADRIGA_MPI_SMALL")
      made.small = least_small(value);
    else if (name == "QUADRIGA_MPI_WITHOUT")
      disable(made, value);
    else
      fail(Errc::invalid_argument,
           fmt::format("{}: known are QUADRIGA_MPI_OFF, _HOST, _EMULATED, _CUDA, _COUNTERS, "
                       "_SMALL and _WITHOUT",
                       name));
  }
  return made;
}

std::array<std::uint64_t, counter_count> values_of(const MpiCounters& c) noexcept {
  return {c.sent,      c.sent_bytes, c.received, c.small,   c.copied,
          c.looked_at, c.packed,     c.staged,   c.together};
}

std::string text_of(const std::array<std::uint64_t, counter_count>& sums, int ranks, int with) {
  return fmt::format(
      "quadriga mpi-preload: {} of {} ranks; sent {} messages of {} bytes, received {}; by MPI "
      "from "
      "devices {}; copied aside {}; looked at {}; packed {}; buffers of collectives {}; "
      "collectives by us {}\n",
      with, ranks, sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], sums[7], sums[8]);
}

}  // namespace quadriga::mpi
