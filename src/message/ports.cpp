// SPDX-License-Identifier: BSD-3-Clause
// src/message/ports.cpp: a list of the ports that live, and the one for each CUDA device.
#include "message/ports.h"

#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "device/cuda_reading.h"
#include "message/port_machine.h"

namespace quadriga::message::ports {
namespace {

// Neither goes with the process's statics: threads may still ask.
std::mutex list_mutex;  // Guards list().
std::vector<std::weak_ptr<DevicePort>>& list() {
  static auto* const ports = new std::vector<std::weak_ptr<DevicePort>>;
  return *ports;
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

std::shared_ptr<DevicePort> listed(DevicePort* made) {
  std::shared_ptr<DevicePort> port(made, end);
  const std::lock_guard lock(list_mutex);
  std::erase_if(list(), [](const auto& each) { return each.expired(); });
  list().push_back(port);
  return port;
}

// Who looks at a port may be the last to let it go, and its end waits: not with the lock.
std::vector<std::weak_ptr<DevicePort>> all() {
  const std::lock_guard lock(list_mutex);
  return list();
}

double peer_rate_of(int ordinal) {
  const Machine all = Machine::parse("cuda");
  return best_rate_into(all, all.devices[static_cast<std::size_t>(ordinal)].space);
}

}  // namespace

std::shared_ptr<DevicePort> open(Machine machine, const DevicePort::Wrap& wrap) {
  return listed(new DevicePort(std::move(machine), wrap));
}

std::shared_ptr<DevicePort> cuda(int ordinal) {
  static auto* const mutex = new std::mutex;
  static auto* const made = new std::map<int, std::shared_ptr<DevicePort>>;
  const std::lock_guard lock(*mutex);
  std::shared_ptr<DevicePort>& port = (*made)[ordinal];
  if (!port)
    port = listed(
        new DevicePort(machine_of_cuda(ordinal), {}, CudaPort{ordinal, peer_rate_of(ordinal)}));
  return port;
}

// By the runtime's answer: a port of each device in turn would begin all of them, and refuse by an
// exception at each call.
std::shared_ptr<DevicePort> cuda_at(const void* memory) {
  static const bool is_there = [] {
    if (const std::string why = Machine::cuda_absence(); !why.empty()) fail(Errc::unavailable, why);
    return true;
  }();
  static_cast<void>(is_there);
  const int ordinal = cuda_ordinal_of(memory);
  if (ordinal < 0)
    fail(Errc::invalid_argument, "no CUDA device of this process has the array's memory");
  return cuda(ordinal);
}

std::shared_ptr<DevicePort> find(HandleKind kind) {
  const bool wants_cuda = kind == HandleKind::cuda_ipc || kind == HandleKind::cuda_file;
  const std::vector<std::weak_ptr<DevicePort>> known = all();
  for (auto each = known.rbegin(); each != known.rend(); ++each)
    if (auto port = each->lock(); port && port->is_cuda() == wants_cuda) return port;
  return nullptr;
}

std::shared_ptr<DevicePort> find(std::uint64_t number) {
  for (const auto& each : all())
    if (auto port = each.lock(); port && port->number() == number) return port;
  return nullptr;
}

}  // namespace quadriga::message::ports
