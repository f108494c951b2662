// SPDX-License-Identifier: BSD-3-Clause
// bench/kernels.cpp: how long products take on each device by order, and what short sums reach:
// figures of a machine's description that plans follow from.
#include <fmt/format.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <fstream>
#include <limits>
#include <memory>

#include "benchmarks.h"
#include "device/factory.h"
#include "linalg/kernels/codelets.h"
#include "line.h"

namespace quadriga::bench {
namespace {

constexpr std::int64_t shortest = 256;

/// Products in double precision on one device that has nothing else to do.
class TimedProducts {
 public:
  TimedProducts(Backend& backend, DeviceId device, std::int64_t most)
      : backend_(backend),
        device_(device),
        stream_(backend.create_stream(device, StreamKind::compute)),
        most_(most) {
    constexpr kernels::RandomMatrix random_bits{.seed = 5};
    for (std::byte*& matrix : matrices_) {
      matrix = backend.allocate(device, static_cast<std::size_t>(most * most) * sizeof(double));
      if (matrix == nullptr)
        fail(Errc::too_large, fmt::format("no room for products of order {}", most));
      const View whole{matrix, most, most, most, DType::float64};
      queue(kernels::random_codelet(DType::float64), {&whole, 1},
            std::as_bytes(std::span(&random_bits, 1)));
    }
    wait();
  }
  ~TimedProducts() {
    for (std::byte* const matrix : matrices_)
      if (matrix != nullptr) backend_.deallocate(device_, matrix);
  }
  TimedProducts(const TimedProducts&) = delete;
  TimedProducts& operator=(const TimedProducts&) = delete;

  /// Seconds of one of several in a row, the best of `repeat` times. Matrices are order x inner,
  /// inner x order, and order x order.
  double seconds(std::int64_t order, std::int64_t inner, std::int64_t repeat) {
    constexpr int in_a_row = 8;
    constexpr kernels::GemmParams product{.beta = {1, 0}};
    const std::array operands{View{matrices_[0], order, inner, most_, DType::float64},
                              View{matrices_[1], inner, order, most_, DType::float64},
                              View{matrices_[2], order, order, most_, DType::float64}};
    double best = std::numeric_limits<double>::infinity();
    for (std::int64_t time = 0; time <= repeat; ++time) {
      const double begin = now();
      for (int i = 0; i < in_a_row; ++i)
        queue(kernels::gemm_codelet(DType::float64), operands,
              std::as_bytes(std::span(&product, 1)));
      wait();
      if (time > 0) best = std::min(best, (now() - begin) / in_a_row);  // the first one warms up
    }
    return best;
  }

 private:
  void queue(const Codelet& codelet, std::span<const View> operands,
             std::span<const std::byte> parameters) {
    const bool is_cuda = backend_.machine().devices[device_].kind == DeviceKind::cuda;
    Launch launch;
    launch.kernel = is_cuda ? &codelet.cuda : &codelet.cpu;
    launch.arguments.operands = operands;
    launch.arguments.params = parameters;
    launch.name = codelet.name;
    backend_.launch(stream_, launch);
    ++queued_;
  }
  void wait() {
    for (Completion completion; queued_ > 0;) {
      if (backend_.next_completion({&completion, 1}, never) == 0) continue;
      --queued_;
      if (completion.error) std::rethrow_exception(completion.error);
    }
  }

  Backend& backend_;
  DeviceId device_;
  StreamId stream_;
  std::int64_t most_;
  std::array<std::byte*, 3> matrices_{};
  int queued_ = 0;
};

/// The largest power of two of which three matrices take a quarter of the device's memory.
std::int64_t most_on(const Device& device, std::int64_t most) {
  constexpr double share_of_memory = 0.25;
  const double elements =
      share_of_memory * static_cast<double>(device.memory_bytes) / sizeof(double);
  while (most > shortest && 3 * static_cast<double>(most * most) > elements) most /= 2;
  return most;
}

void measure(Backend& backend, DeviceId id, const Settings& settings, Machine& machine) {
  Device& device = machine.devices[id];
  const std::int64_t most = most_on(device, settings.integer("most", 4096));
  const std::int64_t repeat = settings.integer("repeat", 5);
  TimedProducts products(backend, id, most);
  if (device.rates.empty()) device.rates = device.name;
  auto& table = machine.kernels["dgemm"][device.rates];
  table.clear();
  for (std::int64_t order = shortest; order <= most; order *= 2) {
    const double seconds = products.seconds(order, order, repeat);
    table[static_cast<double>(order)] = seconds;
    Line(fmt::format("{}-dgemm-{}", device.name, order))
        .add("value", seconds)
        .add("unit", "s")
        .add("flops", 2 * std::pow(static_cast<double>(order), 3) / seconds)
        .print();
  }
  device.sums.clear();
  const double whole = products.seconds(most, most, repeat);
  for (std::int64_t inner = shortest; inner <= most; inner *= 2) {
    const double share = inner == most
                             ? 1
                             : whole * static_cast<double>(inner) / static_cast<double>(most) /
                                   products.seconds(most, inner, repeat);
    device.sums[static_cast<double>(inner)] = std::min(1.0, share);
    Line(fmt::format("{}-sums-{}", device.name, inner))
        .add("value", share)
        .add("unit", "of the rate")
        .add("bound", 1)
        .print();
  }
}

}  // namespace

void kernel_times(const Settings& settings) {
  Machine machine = Machine::parse(settings.text("devices", "auto"));
  require(machine.spaces() > 1, "no device has memory of its own; --devices names some");
  const std::unique_ptr<Backend> backend = make_backend(machine);
  for (DeviceId id = 0; id < machine.devices.size(); ++id)
    if (machine.devices[id].space != host_space) measure(*backend, id, settings, machine);
  const std::string file = settings.text("description");
  if (file.empty()) return;
  std::ofstream out(file);
  out << machine.to_json();
  if (!out.flush()) fail(Errc::io, fmt::format("{} can't be written", file));
}

}  // namespace quadriga::bench
