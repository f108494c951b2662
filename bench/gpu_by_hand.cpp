// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_by_hand.cpp: a stream of chunks over GPUs by hand and as a pipeline, beside its bound.
//
// Chunks of --least to --most bytes in pinned memory pass a dummy kernel; r is the time of both
// copies of a chunk over that of its kernel. Every way is run in turn, --repeat times.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "gpu.h"
#include "gpu_parts.h"
#include "line.h"
#include "manual/manual.h"

namespace quadriga::bench {
namespace {

using manual::Chunk;
using manual::Work;

/// Chunks of random sizes, one behind the other in pinned memory.
class Chunks {
 public:
  Chunks(const Settings& settings) {
    const auto count = static_cast<std::size_t>(settings.integer("chunks", 48));
    const auto least = static_cast<std::uint64_t>(settings.integer("least", 16'000'000));
    const auto most = static_cast<std::uint64_t>(settings.integer("most", 160'000'000));
    require(least <= most, "--least must not exceed --most");
    Random random(static_cast<std::uint64_t>(settings.integer("seed", 1)));
    for (std::size_t i = 0; i < count; ++i)
      chunks_.push_back(
          {nullptr, static_cast<std::size_t>(least + random.below(most - least + 1))});
    for (const Chunk& each : chunks_) bytes_ += each.bytes;
    cuda::check(cudaHostAlloc(&memory_, bytes_, cudaHostAllocPortable), "pinned memory");
    auto* next = static_cast<std::byte*>(memory_);
    for (Chunk& each : chunks_) each.memory = std::exchange(next, next + each.bytes);
    std::fill_n(static_cast<std::byte*>(memory_), bytes_, std::byte{0});
  }
  ~Chunks() { cudaFreeHost(memory_); }
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  const std::vector<Chunk>& all() const { return chunks_; }
  double bytes() const { return static_cast<double>(bytes_); }
  std::size_t largest() const { return std::ranges::max(chunks_, {}, &Chunk::bytes).bytes; }
  /// Errors: internal if some byte wasn't changed as often as chunks passed.
  void check(int passes) const {
    for (const Chunk& each : chunks_)
      for (const std::size_t at : {std::size_t{0}, each.bytes / 2, each.bytes - 1})
        if (each.memory[at] != static_cast<std::byte>(passes))
          fail(Errc::internal, "a chunk wasn't changed once by each way");
  }

 private:
  std::vector<Chunk> chunks_;
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
};

struct Way {
  const char* name;
  std::function<double(const Work&)> run;
};

/// The least time: the link's, or the kernels', with the smallest chunk's head and tail.
double bound(const Work& work, double bytes, double in, double out) {
  const double smallest =
      static_cast<double>(std::ranges::min(work.chunks, {}, &Chunk::bytes).bytes);
  const double gpus = work.gpus;
  const double kernels = bytes / gpus * work.kernel_seconds_byte + smallest * (in + out);
  const double kernel = smallest * work.kernel_seconds_byte;
  return std::max({kernels, bytes / gpus * in + kernel + smallest * out,
                   bytes / gpus * out + kernel + smallest * in});
}

}  // namespace

void by_hand_rates(const Settings& settings, Machine (*machine_of)(int gpus)) {
  const Chunks chunks(settings);
  const auto gpus = static_cast<int>(settings.integer("gpus", 1));
  const auto repeat = settings.integer("repeat", 3);
  constexpr std::size_t probe = 256 << 20;
  const double in = plain_copy(true, probe, 5) / static_cast<double>(probe);
  const double out = plain_copy(false, probe, 5) / static_cast<double>(probe);
  const std::size_t memory = std::size_t{8} << 30;  // of each GPU, as the engine's arena here
  const std::vector<Way> ways{
      {"naive", manual::naive},
      {"all in, all out", [&](const Work& work) { return manual::all_in_all_out(work, memory); }},
      {"a thread a GPU", manual::thread_a_gpu},
      {"pipeline", [&](const Work& work) { return manual::pipeline(work, machine_of(gpus)); }}};
  int passes = 0;
  for (const long long percent : {10LL, 25LL, 50LL, 75LL, 100LL}) {
    const double ratio = static_cast<double>(percent) / 100;
    const Work work{gpus, chunks.all(), chunks.largest(), (in + out) / ratio};
    std::vector<std::vector<double>> seconds(ways.size());
    for (long long i = 0; i < repeat; ++i)
      for (std::size_t way = 0; way < ways.size(); ++way) {
        seconds[way].push_back(ways[way].run(work));
        ++passes;
      }
    for (std::size_t way = 0; way < ways.size(); ++way)
      Line(fmt::format("stream, {}", ways[way].name))
          .add("gpus", gpus)
          .add("r_percent", static_cast<double>(percent))
          .add("seconds", median(seconds[way]))
          .add("bound", bound(work, chunks.bytes(), in, out))
          .add("of_pipeline", median(seconds.back()) / median(seconds[way]))
          .print();
  }
  chunks.check(passes);
}

}  // namespace quadriga::bench
