// SPDX-License-Identifier: BSD-3-Clause
// src/device/host_move.h: what a copy of elements within a memory costs, where nobody measured it.
#pragma once

#include <quadriga/machine.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace quadriga {

/// A Cost's kernel for what touches each element of `order` * `order` once. It takes as long as
/// `volume` of a product, by the table; on a host without times of products as long as the host's
/// memory takes to read and write the elements.
struct HostMove {
  std::string_view cost;
  std::string_view product;
  double element_bytes;
};

/// By type, in the order of the tables of kernels.
inline constexpr std::array<HostMove, 4> host_moves{
    {{"smove", "sgemm", 4}, {"dmove", "dgemm", 8}, {"cmove", "cgemm", 8}, {"zmove", "zgemm", 16}}};

/// Null if it is another kernel.
inline const HostMove* host_move(std::string_view kernel) noexcept {
  const auto found = std::ranges::find(host_moves, kernel, &HostMove::cost);
  return found == host_moves.end() ? nullptr : &*found;
}

/// Bytes per second of the host's memory: of the quickest link that copies from or to it cross,
/// as nothing tells how much quicker the memory is. 0: there is none.
inline double host_memory_rate(const Machine& machine) noexcept {
  double rate = 0;
  for (const Route& route : machine.routes) {
    if (route.from != host_space && route.to != host_space) continue;
    for (const int link : route.links)
      rate = std::max(rate, machine.links[static_cast<std::size_t>(link)].bytes_per_second);
  }
  return rate;
}

}  // namespace quadriga
