// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_stream_commands.cpp: what a command of a pipeline on a GPU costs, beside CUDA calls.
//
// Chunks are so small that nothing but commands takes time: a copy in, --kernels, a copy home. By
// hand one thread queues the same calls on four streams in turn, and waits for the chunk before.
#include <quadriga/pipeline.h>

#include <array>
#include <string>

#include "gpu.h"
#include "gpu_buffer.h"
#include "gpu_parts.h"
#include "gpu_spin.h"
#include "line.h"

namespace quadriga::bench {
namespace {

using cuda::check;

struct Work {
  std::uint64_t chunks = 0;
  long long kernels = 1;
  std::int64_t bytes = 4096;

  double microseconds_of_command(double seconds) const {
    return 1e6 * seconds / static_cast<double>(chunks) / static_cast<double>(kernels + 2);
  }
};

double by_pipeline(Engine& engine, const Work& work) {
  Codelet small;
  small.name = "small";
  small.access = {Access::update};
  small.cuda = [](const Arguments& call) {
    const View& x = call.operands[0];
    queue_spin(static_cast<cudaStream_t>(call.stream), 0, x.as<std::uint8_t>(), x.rows);
  };
  Pipeline pipeline({.engine = &engine});
  pipeline.source([&work](Chunk& chunk) {
    if (chunk.number() >= work.chunks) return false;
    chunk.add("x", work.bytes, 1, DType::bytes);
    return true;
  });
  for (long long k = 0; k < work.kernels; ++k) pipeline.kernel(small, {updates("x")});
  return pipeline.run().seconds;
}

/// On the first GPU.
double by_hand(const Work& work) {
  check(cudaSetDevice(0), "choosing a device");
  constexpr std::size_t count = 4;
  const auto bytes = static_cast<std::size_t>(work.bytes);
  std::array<cudaStream_t, count> streams{};
  std::byte* home = nullptr;
  check(cudaHostAlloc(reinterpret_cast<void**>(&home), count * bytes, cudaHostAllocPortable),
        "pinning");
  DeviceBuffer there(count * bytes);
  for (cudaStream_t& stream : streams)
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  const double begin = now();
  for (std::uint64_t chunk = 0; chunk < work.chunks; ++chunk) {
    const std::size_t turn = chunk % count;
    const cudaStream_t stream = streams[turn];
    check(cudaStreamSynchronize(stream), "a chunk");
    auto* const device = static_cast<std::uint8_t*>(there.data()) + turn * bytes;
    std::byte* const host = home + turn * bytes;
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyDefault, stream), "copying in");
    for (long long k = 0; k < work.kernels; ++k) queue_spin(stream, 0, device, work.bytes);
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDefault, stream), "copying out");
  }
  for (const cudaStream_t stream : streams) {
    check(cudaStreamSynchronize(stream), "the last chunks");
    cudaStreamDestroy(stream);
  }
  const double seconds = now() - begin;
  cudaFreeHost(home);
  return seconds;
}

}  // namespace

void stream_command_costs(const Machine& machine, const Settings& settings) {
  Work work;
  work.chunks = static_cast<std::uint64_t>(settings.integer("count", 20'000));
  work.kernels = settings.integer("kernels", 1);
  work.bytes = settings.integer("bytes", 4096);
  EngineOptions options;
  options.machine = machine;
  Engine engine(options);
  by_pipeline(engine, work);
  std::vector<double> ours;
  std::vector<double> bare;
  for (long long i = 0; i < settings.integer("repeat", 3); ++i) {
    ours.push_back(by_pipeline(engine, work));
    bare.push_back(by_hand(work));
  }
  Line("stream commands")
      .add("value", work.microseconds_of_command(median(ours)))
      .add("unit", "us a command")
      .add("by_hand", work.microseconds_of_command(median(bare)))
      .add("kernels", static_cast<double>(work.kernels))
      .add("chunks", static_cast<double>(work.chunks))
      .print();
}

}  // namespace quadriga::bench
