// SPDX-License-Identifier: BSD-3-Clause
// bench/collective_rounds.h: collectives of two processes to be timed, for us and for a reference.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace quadriga::bench {

inline constexpr std::array collective_names{"bcast", "reduce", "allreduce", "allgather",
                                             "alltoall"};

/// Collectives of doubles; `count` is that of a rank's array, for alltoall of all parts together.
class CollectiveCalls {
 public:
  virtual ~CollectiveCalls() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  /// Of collective_names; `into` has room for a result, of size() arrays for allgather.
  virtual void call(std::string_view name, double* from, double* into, int count) = 0;
};

/// Seconds a call, the median of batches, after a look at the result.
inline double collective_seconds(CollectiveCalls& calls, std::string_view name, std::size_t bytes,
                                 int batches) {
  using Clock = std::chrono::steady_clock;
  // A multiple of the ranks, for alltoall.
  const int parts = std::max(static_cast<int>(bytes / sizeof(double)) / calls.size(), 1);
  const int count = parts * calls.size();
  const auto length = static_cast<std::size_t>(count);
  const auto ranks = static_cast<std::size_t>(calls.size());
  std::vector<double> from(length, calls.rank() + 1), into(length * ranks, 0);
  const int rounds =
      static_cast<int>(std::clamp<std::size_t>((std::size_t{4} << 20) / (bytes + 4096), 1, 1000));
  std::vector<double> seconds;
  for (int batch = 0; batch <= batches; ++batch) {
    calls.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i) calls.call(name, from.data(), into.data(), count);
    const std::chrono::duration<double> passed = Clock::now() - start;
    if (batch > 0) seconds.push_back(passed.count() / rounds);
  }
  const double all = static_cast<double>(calls.size() * (calls.size() + 1)) / 2;
  const bool is_right = name == "bcast"       ? from.back() == 1
                        : name == "reduce"    ? calls.rank() != 0 || into[length - 1] == all
                        : name == "allreduce" ? into[length - 1] == all
                        : name == "allgather" ? into.back() == calls.size()
                                              : into[length - 1] == calls.size();
  if (!is_right) throw std::runtime_error("a collective had another result");
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

}  // namespace quadriga::bench
