// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_streams.cpp: a pipeline on GPUs beside its bound and beside streams by hand.
//
// Chunks of --least to --most megabytes (fixed: their mean) cross the link to a GPU, a kernel works
// on each for a stated time, and they go home. r is the time of both copies over that of the
// kernel, so up to 200 % the kernels bound the run. By hand, a thread a GPU takes the next chunk:
// on one stream, which overlaps nothing, and on three in turn, each with a buffer; chunks as they
// come, and the largest first.
#include <fmt/format.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gpu.h"
#include "gpu_buffer.h"
#include "gpu_parts.h"
#include "gpu_spin.h"

namespace quadriga::bench {
namespace {

using cuda::check;

struct Work {
  int gpus = 1;
  double nanoseconds_a_byte = 0;    // Of the kernel.
  std::vector<std::int64_t> sizes;  // Bytes, by chunk.
  std::int64_t most = 0;            // Of them, and how far apart they lie.
  std::byte* home = nullptr;        // Pinned.

  std::byte* chunk(std::size_t i) const { return home + static_cast<std::int64_t>(i) * most; }
  double kernel_seconds(std::int64_t bytes) const {
    return 1e-9 * nanoseconds_a_byte * static_cast<double>(bytes);
  }
};

std::vector<std::int64_t> draw_sizes(const Settings& settings) {
  const auto least = settings.integer("least", 16) * 1'000'000;
  const auto most = settings.integer("most", 160) * 1'000'000;
  const auto count = static_cast<std::size_t>(settings.integer("chunks", 48));
  std::vector<std::int64_t> sizes(count, (least + most) / 2);
  Random random(static_cast<std::uint64_t>(settings.integer("seed", 1, 0)));
  if (settings.text("sizes", "random") == "random")
    for (std::int64_t& each : sizes)
      each = least +
             static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  return sizes;
}

/// Seconds of a run through a pipeline, and what its own bound is.
PipelineStats by_pipeline(Engine& engine, const Work& work) {
  Codelet dummy;
  dummy.name = "dummy";
  dummy.access = {Access::update};
  dummy.cuda = [&work](const Arguments& call) {
    const View& view = call.operands[0];
    queue_spin(static_cast<cudaStream_t>(call.stream),
               static_cast<std::int64_t>(1e9 * work.kernel_seconds(view.rows)),
               view.as<std::uint8_t>(), view.rows);
  };
  dummy.cost = [&work](const Arguments& call) {
    return Cost::of_seconds(work.kernel_seconds(call.operands[0].rows));
  };
  PipelineOptions options;
  options.engine = &engine;
  options.look_ahead = static_cast<int>(work.sizes.size());
  options.host_memory = "1TiB";
  Pipeline pipeline(options);
  pipeline
      .source([&work](Chunk& chunk) {
        const std::size_t i = chunk.number();
        if (i >= work.sizes.size()) return false;
        chunk.lend("x", {work.chunk(i), work.sizes[i], 1, work.sizes[i], DType::bytes});
        return true;
      })
      .kernel(dummy, {updates("x")});
  return pipeline.run();
}

/// A thread of a GPU: takes chunks, each on the next of its streams with that stream's buffer.
void drive(const Work& work, int gpu, std::size_t streams,
           const std::function<std::size_t()>& take) {
  check(cudaSetDevice(gpu), "choosing a device");
  std::vector<cudaStream_t> all(streams);
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (cudaStream_t& stream : all) {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    buffers.push_back(std::make_unique<DeviceBuffer>(static_cast<std::size_t>(work.most)));
  }
  for (std::size_t turn = 0;; turn = (turn + 1) % streams) {
    check(cudaStreamSynchronize(all[turn]), "a chunk");
    const std::size_t i = take();
    if (i >= work.sizes.size()) break;
    const auto bytes = static_cast<std::size_t>(work.sizes[i]);
    auto* const there = static_cast<std::uint8_t*>(buffers[turn]->data());
    check(cudaMemcpyAsync(there, work.chunk(i), bytes, cudaMemcpyDefault, all[turn]), "copying in");
    queue_spin(all[turn], static_cast<std::int64_t>(1e9 * work.kernel_seconds(work.sizes[i])),
               there, work.sizes[i]);
    check(cudaMemcpyAsync(work.chunk(i), there, bytes, cudaMemcpyDefault, all[turn]),
          "copying out");
  }
  for (const cudaStream_t stream : all) {
    check(cudaStreamSynchronize(stream), "the last chunks");
    cudaStreamDestroy(stream);
  }
}

double by_hand(const Work& work, std::size_t streams, bool is_sorted) {
  std::vector<std::size_t> order(work.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (is_sorted) std::ranges::sort(order, std::greater{}, [&](auto i) { return work.sizes[i]; });
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    const std::size_t i = next++;
    return i < order.size() ? order[i] : order.size();
  };
  const double begin = now();
  {
    std::vector<std::jthread> threads;
    for (int gpu = 0; gpu < work.gpus; ++gpu)
      threads.emplace_back([&, gpu] { drive(work, gpu, streams, take); });
  }
  return now() - begin;
}

/// The kernels' time shared by the GPUs, between the copies of the smallest chunk.
double kernel_bound(const Work& work, double in_rate, double out_rate) {
  const auto smallest = static_cast<double>(*std::ranges::min_element(work.sizes));
  const std::int64_t all = std::accumulate(work.sizes.begin(), work.sizes.end(), std::int64_t{0});
  return work.kernel_seconds(all) / work.gpus + smallest / in_rate + smallest / out_rate;
}

/// All chunks are what they were, and one more in each byte for each run.
bool is_right(const Work& work, int runs) {
  for (std::size_t i = 0; i < work.sizes.size(); ++i)
    for (std::int64_t k = 0; k < work.sizes[i]; k += 4093)
      if (static_cast<std::uint8_t>(work.chunk(i)[k]) != static_cast<std::uint8_t>(runs))
        return false;
  return true;
}

}  // namespace

void stream_rates(const Machine& machine, const Settings& settings) {
  const auto repeat = settings.integer("repeat", 3);
  Work work;
  work.gpus = static_cast<int>(settings.integer("gpus", 1));
  work.sizes = draw_sizes(settings);
  work.most = *std::ranges::max_element(work.sizes);
  const auto bytes = static_cast<std::size_t>(work.most) * work.sizes.size();
  check(cudaHostAlloc(reinterpret_cast<void**>(&work.home), bytes, cudaHostAllocPortable),
        "pinning the chunks");
  std::fill_n(work.home, bytes, std::byte{0});
  const auto sample = static_cast<std::size_t>(work.most);
  const double in = static_cast<double>(sample) / plain_copy(true, sample, 3);
  const double out = static_cast<double>(sample) / plain_copy(false, sample, 3);
  const double ratio = static_cast<double>(settings.integer("r", 100)) / 100;
  work.nanoseconds_a_byte = 1e9 * (1 / in + 1 / out) / ratio;
  EngineOptions options;
  options.machine = machine;
  Engine engine(options);
  int runs = 1;
  double own_bound = by_pipeline(engine, work).bound_seconds;
  std::vector<double> ours;
  std::vector<double> one_stream;
  double best = std::numeric_limits<double>::infinity();
  for (long long i = 0; i < repeat; ++i) {
    const PipelineStats stats = by_pipeline(engine, work);
    ours.push_back(stats.seconds);
    own_bound = stats.bound_seconds;
    one_stream.push_back(by_hand(work, 1, false));
    best = std::min({best, by_hand(work, 3, false), by_hand(work, 3, true)});
    runs += 4;
  }
  // What all links carry at once: less than each alone where they share the host's memory.
  Work copies = work;
  copies.nanoseconds_a_byte = 0;
  const double copies_seconds = std::min(by_hand(copies, 3, false), by_hand(copies, 3, true));
  runs += 2;
  const double bound = kernel_bound(work, in, out);
  Line("streams")
      .add("gpus", work.gpus)
      .add("chunks", static_cast<double>(work.sizes.size()))
      .add("sizes", settings.text("sizes", "random"))
      .add("r", ratio)
      .add("seconds", median(ours))
      .add("bound_seconds", bound)
      .add("percent_over_bound", 100 * (median(ours) / bound - 1))
      .add("own_bound_seconds", own_bound)
      .add("copies_seconds", copies_seconds)
      .add("over_one_stream", median(one_stream) / median(ours))
      .add("over_best_by_hand", best / median(ours))
      .add("right", is_right(work, runs) ? "yes" : "no")
      .print();
  cudaFreeHost(work.home);
}

}  // namespace quadriga::bench
