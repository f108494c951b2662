// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_port.cpp: a port's backend, and the order in which its parts begin and end.
#include "message/device_port.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "device/factory.h"
#include "device/reference_machine.h"
#include "message/port_machine.h"

namespace quadriga::message {
namespace {

std::atomic<std::uint64_t> made_ports{0};

std::unique_ptr<Backend> backend_for(Machine machine, const DevicePort::Wrap& wrap) {
  const bool has_memory = std::ranges::any_of(
      machine.devices, [](const Device& each) { return each.space != host_space; });
  if (!has_memory)
    fail(Errc::invalid_argument,
         fmt::format("machine '{}' has no devices with memory of their own", machine.name));
  BackendOptions options;
  options.emulated_options.shares_memory = true;
  auto made = make_backend(with_own_routes(std::move(machine)), options);
  return wrap ? wrap(std::move(made)) : std::move(made);
}

// A CUDA device packs and unpacks by kernels that want more at once.
std::size_t scratch_bytes(bool is_cuda) {
  return is_cuda ? std::size_t{32} << 20 : PortBlocks::block_bytes;
}

}  // namespace

DevicePort::DevicePort(Machine machine, const Wrap& wrap, std::optional<CudaPort> cuda)
    : is_cuda_(cuda.has_value()),
      cuda_(cuda.value_or(CudaPort{})),
      number_(++made_ports),
      backend_(backend_for(std::move(machine), wrap)),
      operations_(*backend_),
      memory_(*backend_, operations_),
      blocks_(*backend_, memory_, scratch_bytes(is_cuda_)),
      packing_(operations_, is_cuda_ ? std::optional(cuda_.ordinal) : std::nullopt),
      streams_(*backend_, operations_, is_cuda_,
               [this]() -> std::shared_ptr<void> { return weak_from_this().lock(); }) {}

DevicePort::~DevicePort() {
  operations_.finish_lanes();
  blocks_.unpin();
  backend_.reset();
}

SpaceId DevicePort::space(DeviceId device) const noexcept {
  return machine().devices[device].space;
}

double DevicePort::peer_rate(DeviceId device) const {
  constexpr std::size_t large = std::size_t{1} << 30;
  const double known = is_cuda_ ? cuda_.peer_rate : best_rate_into(machine(), space(device));
  return known > 0 ? known : static_cast<double>(large) / seconds(host_space, space(device), large);
}

MessageCost DevicePort::message_cost() const {
  const MessageCost& known = machine().message;
  return known.latency_seconds > 0 ? known : reference_machine().message;
}

double DevicePort::seconds(SpaceId from, SpaceId to, std::size_t bytes) const {
  return machine().copy_seconds(from, to, static_cast<double>(bytes));
}

}  // namespace quadriga::message
