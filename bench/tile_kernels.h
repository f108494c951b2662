// SPDX-License-Identifier: BSD-3-Clause
// bench/tile_kernels.h: the tile kernels of the linear algebra on one device, timed.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "device/backend.h"

namespace quadriga::bench {

enum class TileKernel { gemm, syrk, trsm, potrf };
inline constexpr TileKernel tile_kernels[] = {TileKernel::gemm, TileKernel::syrk, TileKernel::trsm,
                                              TileKernel::potrf};

/// As descriptions name it: "dgemm".
std::string_view name_of(TileKernel kernel, DType type);

/// Tiles of one order on a device that has nothing else to do: well-conditioned, of random bits.
class TimedTiles {
 public:
  /// Errors: too_large if the device has no room for five of them a stream.
  TimedTiles(Backend& backend, DeviceId device, std::span<const StreamId> streams, DType type,
             std::int64_t order);
  ~TimedTiles();
  TimedTiles(const TimedTiles&) = delete;
  TimedTiles& operator=(const TimedTiles&) = delete;

  /// Seconds of one of several in a row: the median of `repeat` times, after one that warms up.
  double seconds(TileKernel kernel, int repeat);
  /// How many times as much as one alone so many kernels do that run at once, each on a stream of
  /// its own: at least 1, at most their number.
  double gain(TileKernel kernel, int at_once, int repeat);
  /// Seconds of an operation that does nothing to speak of, one after the other.
  double launch_seconds(int repeat);

 private:
  struct Set {
    StreamId stream = 0;
    std::byte* memory[5] = {};  ///< A, B, C, a positive definite matrix, and its copy.
  };
  /// What a launch refers to, as long as it may run. Made once: only the launch is to be timed.
  struct Prepared {
    const Codelet* codelet = nullptr;
    StreamId stream = 0;
    std::vector<View> operands;
    std::vector<std::byte> params;
  };
  const Prepared& prepare(const Set& set, const Codelet& codelet, std::span<const View> operands,
                          std::span<const std::byte> params);
  View tile(const Set& set, int number) const;
  std::byte* allocate();
  void fill(Set& set);
  void queue(const Set& set, const Codelet& codelet, std::span<const View> operands,
             std::span<const std::byte> params);
  void queue(const Set& set, TileKernel kernel);
  void queue_copy(const Set& set);
  void wait();
  template <class Queue>
  double median_of(int repeat, int count, Queue&& queue);

  Backend& backend_;
  DeviceId device_;
  DType type_;
  std::int64_t order_;
  std::vector<Set> sets_;  ///< By stream.
  std::deque<Prepared> prepared_;
  std::vector<std::vector<std::byte>> on_host_;  ///< Of a device without memory of its own.
  int queued_ = 0;
};

}  // namespace quadriga::bench
