// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_queue.cpp: operations queued a second, through an engine and by one thread a GPU alone.
//
// An item is eight bytes in pinned memory: they are copied in, scaled by a tiny kernel, and copied
// home. What takes time is queueing; the links and the devices are nearly idle.
#include <quadriga/engine.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <thread>
#include <vector>

#include "gpu.h"
#include "gpu_buffer.h"
#include "gpu_parts.h"
#include "linalg/kernels/codelets.h"

namespace quadriga::bench {
namespace {

using cuda::check;

constexpr double operations_an_item = 3;

/// A thread of its own for each GPU does nothing else but queue: operations a second of all.
double bare_rate(int gpus, long long items) {
  std::barrier together(gpus + 1);
  std::vector<std::jthread> threads;
  const HostMatrix home(gpus, true);
  for (int gpu = 0; gpu < gpus; ++gpu)
    threads.emplace_back([&, gpu] {
      check(cudaSetDevice(gpu), "choosing a device");
      const DeviceBuffer tile(sizeof(double));
      cudaStream_t stream = nullptr;
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
      double* const item = home.data() + static_cast<std::ptrdiff_t>(gpu) * gpus;
      const auto run = [&](long long count) {
        for (long long i = 0; i < count; ++i) {
          check(cudaMemcpyAsync(tile.data(), item, sizeof(double), cudaMemcpyDefault, stream),
                "copying in");
          kernels::cuda::scale<double>(stream, 1.0, {tile.doubles(), 1, 1, 1});
          check(cudaMemcpyAsync(item, tile.data(), sizeof(double), cudaMemcpyDefault, stream),
                "copying out");
        }
        check(cudaStreamSynchronize(stream), "the items");
      };
      run(items / 8 + 1);
      together.arrive_and_wait();
      run(items);
      together.arrive_and_wait();
      cudaStreamDestroy(stream);
    });
  together.arrive_and_wait();
  const double begin = now();
  together.arrive_and_wait();
  return operations_an_item * static_cast<double>(items) * gpus / (now() - begin);
}

/// The same by tasks of one engine on that many GPUs.
double engine_rate(const Machine& machine, long long items, long long repeat) {
  EngineOptions options;
  options.machine = machine;
  Engine engine(options);
  const auto gpus = static_cast<DeviceId>(machine.devices.size());
  const auto order = static_cast<std::int64_t>(std::sqrt(static_cast<double>(items * gpus))) + 1;
  const HostMatrix home(order, true);
  std::fill_n(home.data(), order * order, 1.0);
  std::vector<Data> data;
  for (long long i = 0; i < items * gpus; ++i)
    data.push_back(engine.data(home.data() + i, 1, 1, 1, DType::float64));
  const Codelet& scale = kernels::scale_codelet(DType::float64);
  const kernels::ScaleParams params{{1.0, 0}, {}};
  std::vector<double> seconds;
  for (long long run = 0; run <= repeat; ++run) {
    const double begin = now();
    for (std::size_t i = 0; i < data.size(); ++i) {
      SubmitOptions where;
      where.device = static_cast<DeviceId>(i % gpus);
      engine.submit(scale, {{data[i], Access::update}}, params, where);
      engine.final(data[i]);
    }
    engine.wait();
    if (run > 0) seconds.push_back(now() - begin);
  }
  engine.remove(data);
  return operations_an_item * static_cast<double>(items) * gpus / median(seconds);
}

}  // namespace

void queue_rates(const Settings& settings, Machine (*machine_of)(int gpus)) {
  const int gpus = static_cast<int>(settings.integer("gpus", 1));
  const long long items = settings.integer("n", 10000);
  const long long repeat = settings.integer("repeat", 5);
  for (int each = 1; each <= gpus; each *= 2) {
    const double ours = engine_rate(machine_of(each), items, repeat);
    const double bare = bare_rate(each, items);
    Line("queue")
        .add("gpus", each)
        .add("items", static_cast<double>(items))
        .add("operations_a_second", ours)
        .add("bare_operations_a_second", bare)
        .add("ratio", ours / bare)
        .print();
  }
}

}  // namespace quadriga::bench
