// SPDX-License-Identifier: BSD-3-Clause
// src/message/ports.h: the ports of this process: made, and found again.
//
// Any thread. A port lives as long as somebody holds it; CUDA devices' live as long as the process.
#pragma once

#include <cstdint>
#include <memory>

#include "message/device_port.h"

namespace quadriga::message::ports {

/// A port that find() finds. If a thread of the library's lets it go last, such as one of its own
/// streams, another ends it. Errors: as DevicePort's.
std::shared_ptr<DevicePort> open(Machine machine, const DevicePort::Wrap& wrap = {});
/// The port for a CUDA device, made when it is first asked for; one a process.
/// Errors: unavailable without that device; device_lost.
std::shared_ptr<DevicePort> cuda(int ordinal);
/// That of the CUDA device that holds an address. Errors: also invalid_argument if none does.
std::shared_ptr<DevicePort> cuda_at(const void* memory);

/// The port with a number, if it lives.
std::shared_ptr<DevicePort> find(std::uint64_t number);
/// A port of this process that opens such handles; null: there is none. The newest first.
std::shared_ptr<DevicePort> find(HandleKind kind);

}  // namespace quadriga::message::ports
