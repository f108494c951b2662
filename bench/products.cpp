// SPDX-License-Identifier: BSD-3-Clause
// bench/products.cpp: two products are queued at any time, so that the device never pauses.
#include "products.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "linalg/kernels/codelets.h"

namespace quadriga::bench {
namespace {

constexpr kernels::GemmParams product{.beta = {1, 0}};
// A device's clock, and with it what is left of its memory's rate, follows what it multiplies.
constexpr kernels::RandomMatrix random_bits{.seed = 5};

// They leave the copies room on small devices.
std::int64_t order_on(const Device& device, std::size_t matrices) {
  constexpr double most = 2048;
  constexpr double step = 64;
  constexpr double share_of_memory = 1.0 / 16;
  const double bytes = static_cast<double>(device.memory_bytes) * share_of_memory;
  const double order = std::sqrt(bytes / static_cast<double>(matrices * sizeof(double)));
  return static_cast<std::int64_t>(std::clamp(std::floor(order / step) * step, step, most));
}

template <class Parameters>
std::span<const std::byte> as_bytes(const Parameters& parameters) {
  return std::as_bytes(std::span(&parameters, 1));
}

}  // namespace

Products::Products(Backend& backend, DeviceId device, StreamId stream)
    : backend_(backend), device_(device), stream_(stream) {}

// By way of the other constructor, so that what this one has got goes if it throws.
Products::Products(Backend& backend, DeviceId device)
    : Products(backend, device, backend.create_stream(device, StreamKind::compute)) {
  const Device& where = backend.machine().devices[device];
  const std::int64_t order = order_on(where, matrices_.size());
  const auto bytes = static_cast<std::size_t>(order * order) * sizeof(double);
  for (View& matrix : matrices_) {
    matrix = {backend.allocate(device, bytes), order, order, order, DType::float64};
    if (matrix.data == nullptr)
      fail(Errc::too_large,
           fmt::format("{} has no room for products of order {}", where.name, order));
    queue(kernels::random_codelet(DType::float64), {&matrix, 1}, as_bytes(random_bits));
  }
  multiply();
  end();
}

Products::~Products() {
  for (const View& matrix : matrices_)
    if (matrix.data != nullptr) backend_.deallocate(device_, matrix.as<std::byte>());
}

void Products::begin() {
  constexpr int ahead = 2;
  running_ = true;
  count_ = 0;
  for (int i = 0; i < ahead; ++i) multiply();
}

void Products::end() {
  running_ = false;
  while (queued_ > 0) {
    Completion completion;
    if (backend_.next_completion({&completion, 1}, never) > 0) take(completion);
  }
}

bool Products::take(const Completion& completion) {
  if (completion.event.stream != stream_) return false;
  --queued_;
  if (completion.error) std::rethrow_exception(completion.error);
  if (!running_) return true;
  ++count_;
  multiply();
  return true;
}

void Products::multiply() {
  queue(kernels::gemm_codelet(DType::float64), matrices_, as_bytes(product));
}

void Products::queue(const Codelet& codelet, std::span<const View> operands,
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

}  // namespace quadriga::bench
