// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_port.cpp: queueing on a backend of its own, and asking what has ended.
#include "message/device_port.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <utility>

#include "base/thread.h"
#include "device/factory.h"

namespace quadriga::message {
namespace {

std::mutex ports_mutex;  // Guards ports().
std::vector<std::pair<const DevicePort*, std::weak_ptr<DevicePort>>>& ports() {
  static auto* const all = new std::vector<std::pair<const DevicePort*, std::weak_ptr<DevicePort>>>;
  return *all;
}

std::atomic<std::uint64_t> made_ports{0};

// Copies within a device have a way of their own, which no machine describes.
Machine with_own_routes(Machine machine) {
  constexpr double faster_than_any_link = 1e13;
  for (const Device& device : machine.devices) {
    if (device.space == host_space || machine.route(device.space, device.space)) continue;
    machine.routes.push_back(
        {device.space, device.space, {static_cast<int>(machine.links.size())}});
    machine.links.push_back({"memory of " + device.name, faster_than_any_link, 0});
  }
  return machine;
}

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

StreamKind kind_of(DevicePort::Lane lane) {
  if (lane == DevicePort::Lane::in) return StreamKind::copy_in;
  return lane == DevicePort::Lane::out ? StreamKind::copy_out : StreamKind::peer_in;
}

// That machine of a computer's GPUs which has only this one.
Machine machine_of(int ordinal) {
  Machine all = Machine::parse("cuda");
  const auto wanted = static_cast<std::size_t>(ordinal);
  if (ordinal < 0 || wanted >= all.devices.size())
    fail(Errc::unavailable, fmt::format("there is no CUDA device {}; this machine has {}", ordinal,
                                        all.devices.size()));
  Machine one;
  one.name = all.name;
  one.kernels = all.kernels;
  one.launch_seconds = all.launch_seconds;
  Device device = all.devices[wanted];
  const SpaceId before = std::exchange(device.space, SpaceId{1});
  one.devices.push_back(device);
  one.links = all.links;
  for (Route route : all.routes) {
    const bool is_in = route.from == host_space && route.to == before;
    const bool is_out = route.from == before && route.to == host_space;
    if (!is_in && !is_out) continue;
    (is_in ? route.to : route.from) = 1;
    one.routes.push_back(route);
  }
  return one;
}

// Powers of 2, so that few sizes differ; of large ones eighths, so that little is lost.
std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t large = std::size_t{64} << 20;
  if (bytes <= large) return std::bit_ceil(bytes);
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

// Its end waits for its threads and for what they call. A thread of ours may be one of them, or
// what such a call waits for: there another thread ends it.
void end(DevicePort* port) noexcept {
  if (!is_own_thread()) {
    delete port;
    return;
  }
  try {
    start_thread("quadriga freer", [port] { delete port; }).detach();
  } catch (const Error&) {
    // The port idles until the process ends.
  }
}

}  // namespace

DevicePort::DevicePort(Machine machine, int ordinal, const Wrap& wrap)
    : is_cuda_(!machine.devices.empty() && machine.devices.front().kind == DeviceKind::cuda),
      ordinal_(ordinal),
      number_(++made_ports),
      backend_(backend_for(std::move(machine), wrap)),
      packer_(is_cuda_ ? nullptr : DevicePacker::on_host()) {
  tells_ = !is_cuda_ && backend_->tell([this] {
    ++ended_;
    ended_.notify_all();
  });
}

DevicePort::~DevicePort() {
  for (const auto& [_, stream] : streams_) finish({stream, issued_[stream]});
  for (std::byte* const block : host_blocks_) backend_->unpin(block, block_bytes);
  backend_.reset();
  for (std::byte* const block : host_blocks_) std::free(block);
  const std::lock_guard lock(ports_mutex);
  std::erase_if(ports(), [this](const auto& each) { return each.first == this; });
}

std::shared_ptr<DevicePort> DevicePort::cuda(int ordinal) {
  static auto* const mutex = new std::mutex;
  static auto* const made = new std::map<int, std::shared_ptr<DevicePort>>;
  const std::lock_guard lock(*mutex);
  std::shared_ptr<DevicePort>& port = (*made)[ordinal];
  if (!port) port = open(machine_of(ordinal), ordinal);
  return port;
}

std::shared_ptr<DevicePort> DevicePort::cuda_at(const void* memory) {
  static const std::size_t count = [] {
    if (const std::string why = Machine::cuda_absence(); !why.empty()) fail(Errc::unavailable, why);
    return Machine::parse("cuda").devices.size();
  }();
  for (std::size_t ordinal = 0; ordinal < count; ++ordinal) {
    std::shared_ptr<DevicePort> port = cuda(static_cast<int>(ordinal));
    try {
      if (port->holder(memory) != no_device) return port;
      break;  // The host's.
    } catch (const Error& error) {
      if (error.code() != Errc::invalid_argument) throw;  // Another device's.
    }
  }
  fail(Errc::invalid_argument, "no CUDA device of this process has the array's memory");
}

std::shared_ptr<DevicePort> DevicePort::open(Machine machine, int ordinal, const Wrap& wrap) {
  std::shared_ptr<DevicePort> port(new DevicePort(std::move(machine), ordinal, wrap), end);
  const std::lock_guard lock(ports_mutex);
  ports().emplace_back(port.get(), port);
  return port;
}

std::shared_ptr<DevicePort> DevicePort::find(HandleKind kind) {
  const bool wants_cuda = kind == HandleKind::cuda_ipc || kind == HandleKind::cuda_file;
  const std::lock_guard lock(ports_mutex);
  for (auto each = ports().rbegin(); each != ports().rend(); ++each)
    if (auto port = each->second.lock(); port && port->is_cuda() == wants_cuda) return port;
  return nullptr;
}

std::shared_ptr<DevicePort> DevicePort::find(std::uint64_t number) {
  const std::lock_guard lock(ports_mutex);
  for (const auto& [_, each] : ports())
    if (auto port = each.lock(); port && port->number() == number) return port;
  return nullptr;
}

SpaceId DevicePort::space(DeviceId device) const noexcept {
  return machine().devices[device].space;
}

DeviceId DevicePort::holder(const void* memory) const { return backend_->holder(memory); }

std::byte* DevicePort::allocate(DeviceId device, std::size_t bytes) {
  const std::lock_guard lock(memory_mutex_);
  return allocate_locked(device, bytes);
}

// With the memory's lock. What is kept for collectives goes first.
std::byte* DevicePort::allocate_locked(DeviceId device, std::size_t bytes) {
  std::byte* const made = backend_->allocate(device, bytes);
  return made || !free_rooms(device) ? made : backend_->allocate(device, bytes);
}

bool DevicePort::free_rooms(DeviceId device) noexcept {
  const std::vector<std::byte*> gone = rooms(device).clear();
  for (std::byte* const each : gone) backend_->deallocate(device, each);
  return !gone.empty();
}

// With the memory's lock.
DeviceRooms& DevicePort::rooms(DeviceId device) {
  constexpr std::size_t part = 8;
  return rooms_.try_emplace(device, machine().devices[device].memory_bytes / part).first->second;
}

std::size_t DevicePort::room_bytes(DeviceId device) {
  const std::lock_guard lock(memory_mutex_);
  return rooms(device).bytes();
}

std::byte* DevicePort::take_room(DeviceId device, std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  const std::lock_guard lock(memory_mutex_);
  std::byte* const room = rooms(device).take(size);
  return room ? room : allocate_locked(device, size);
}

void DevicePort::give_room(DeviceId device, std::byte* room, std::size_t bytes) noexcept {
  const std::lock_guard lock(memory_mutex_);
  for (std::byte* const each : rooms(device).give(room, rounded(bytes)))
    backend_->deallocate(device, each);
}

void DevicePort::deallocate(DeviceId device, std::byte* memory) noexcept {
  std::vector<PortTicket> last;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [_, stream] : streams_) last.push_back({stream, issued_[stream]});
  }
  for (const PortTicket each : last) finish(each);
  const std::lock_guard lock(memory_mutex_);
  backend_->deallocate(device, memory);
}

MemoryExport DevicePort::export_memory(DeviceId device, const void* memory) {
  const std::lock_guard lock(memory_mutex_);
  return backend_->export_memory(device, memory);
}

std::uint64_t DevicePort::allocation_at(DeviceId device, const void* memory) {
  const std::lock_guard lock(memory_mutex_);
  return backend_->allocation_at(device, memory);
}

std::byte* DevicePort::import_memory(DeviceId device, const MemoryHandle& handle, int descriptor) {
  const std::lock_guard lock(memory_mutex_);
  return backend_->import_memory(device, handle, descriptor);
}

void DevicePort::close_memory(DeviceId device, std::byte* mapped) noexcept {
  const std::lock_guard lock(memory_mutex_);
  backend_->close_memory(device, mapped);
}

StreamId DevicePort::stream(DeviceId device, Lane lane) {
  const auto found = streams_.find({device, lane});
  if (found != streams_.end()) return found->second;
  const StreamId made = backend_->create_stream(device, kind_of(lane));
  reached_.resize(made + 1);
  issued_.resize(made + 1);
  streams_[{device, lane}] = made;
  return made;
}

PortTicket DevicePort::copy(DeviceId device, Lane lane, const Copy& copy) {
  const std::lock_guard lock(mutex_);
  const PortTicket ticket = backend_->copy(stream(device, lane), copy);
  issued_[ticket.stream] = ticket.ticket;
  return ticket;
}

PortTicket DevicePort::launch(DeviceId device, Lane lane, Kernel variant) {
  const std::lock_guard lock(mutex_);
  return launch_on(stream(device, lane), std::move(variant), false);
}

// With the lock.
PortTicket DevicePort::launch_on(StreamId stream, Kernel variant, bool waits) {
  auto kernel = std::make_unique<Kernel>(std::move(variant));
  Launch launch;
  launch.kernel = kernel.get();
  launch.name = "message";
  launch.waits = waits;
  launch.meets = waits;  // What a program's stream calls may wait for messages' own kernels.
  const PortTicket ticket = backend_->launch(stream, launch);
  kernels_[{ticket.stream, ticket.ticket}] = std::move(kernel);
  issued_[ticket.stream] = ticket.ticket;
  return ticket;
}

PortTicket DevicePort::queue_pack(DeviceId device, Lane lane, Packing packing) {
  {
    const std::lock_guard lock(mutex_);
    if (!packer_) packer_ = DevicePacker::on_cuda(ordinal_);
  }
  return launch(device, lane, [this, packing = std::move(packing)](const Arguments& call) {
    packing(*packer_, {call.stream, 0});
  });
}

// With the lock.
bool DevicePort::look(Nanoseconds patience) {
  std::array<Completion, 16> ended;
  const Nanoseconds until = patience > 0 ? backend_->now() + patience : 0;
  const std::size_t count = backend_->next_completion(ended, until);
  for (std::size_t i = 0; i < count; ++i) {
    const Event event = ended[i].event;
    reached_[event.stream] = event.ticket;
    kernels_.erase({event.stream, event.ticket});
    if (ended[i].error) errors_[{event.stream, event.ticket}] = ended[i].error;
  }
  return count > 0;
}

bool DevicePort::has_ended(PortTicket ticket) {
  if (!ticket) return true;
  const std::lock_guard lock(mutex_);
  while (ticket.ticket > reached_[ticket.stream] && look(0)) {
  }
  if (ticket.ticket > reached_[ticket.stream]) return false;
  const auto found = errors_.find({ticket.stream, ticket.ticket});
  if (found == errors_.end()) return true;
  const std::exception_ptr error = found->second;
  errors_.erase(found);
  std::rethrow_exception(error);
}

void DevicePort::finish(PortTicket ticket) noexcept {
  constexpr Nanoseconds slice = 1'000'000;
  try {
    while (ticket) {
      const std::lock_guard lock(mutex_);
      if (ticket.ticket <= reached_[ticket.stream]) break;
      look(slice);
    }
    if (ticket) {
      const std::lock_guard lock(mutex_);
      errors_.erase({ticket.stream, ticket.ticket});
    }
  } catch (...) {
    // A backend that fails has nothing under way any more.
  }
}

std::byte* DevicePort::take_host_block() {
  const std::lock_guard lock(mutex_);
  if (!host_blocks_.empty()) {
    std::byte* const block = host_blocks_.back();
    host_blocks_.pop_back();
    return block;
  }
  auto* const made = static_cast<std::byte*>(std::aligned_alloc(4096, block_bytes));
  if (made) backend_->pin(made, block_bytes);
  return made;
}

void DevicePort::give_host_block(std::byte* block) noexcept {
  const std::lock_guard lock(mutex_);
  if (block) host_blocks_.push_back(block);
}

// Memory is made without the lock: another thread may be freeing some, which takes its time.
std::byte* DevicePort::take(std::map<DeviceId, Blocks>& from, DeviceId device, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    Blocks& free = from[device];
    if (!free.empty()) {
      std::byte* const block = free.back();
      free.pop_back();
      return block;
    }
  }
  return allocate(device, bytes);
}

std::byte* DevicePort::take_block(DeviceId device) { return take(blocks_, device, block_bytes); }

void DevicePort::give_block(DeviceId device, std::byte* block) noexcept {
  const std::lock_guard lock(mutex_);
  if (block) blocks_[device].push_back(block);
}

std::byte* DevicePort::take_scratch(DeviceId device) {
  return take(scratch_, device, scratch_bytes());
}

void DevicePort::give_scratch(DeviceId device, std::byte* block) noexcept {
  const std::lock_guard lock(mutex_);
  if (block) scratch_[device].push_back(block);
}

double DevicePort::seconds(SpaceId from, SpaceId to, std::size_t bytes) const {
  return machine().copy_seconds(from, to, static_cast<double>(bytes));
}

}  // namespace quadriga::message
