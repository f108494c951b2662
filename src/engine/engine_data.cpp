// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_data.cpp: the functions of an engine that register data and sequences.
#include <fmt/format.h>
#include <quadriga/engine.h>

#include "engine/engine_access.h"
#include "engine/engine_impl.h"

namespace quadriga {

Data Engine::data(void* home, std::int64_t rows, std::int64_t cols, std::int64_t ld, DType dtype,
                  DataOptions options) {
  return EngineAccess::add(*this, no_device, {home, rows, cols, ld, dtype}, options, false);
}

Data Engine::data(DeviceId device, void* home, std::int64_t rows, std::int64_t cols,
                  std::int64_t ld, DType dtype, DataOptions options) {
  return EngineAccess::add(*this, device, {home, rows, cols, ld, dtype}, options, false);
}

Data EngineAccess::add(Engine& engine, DeviceId device, const View& view, DataOptions options,
                       bool is_private, CopyWatch* watch) {
  Engine::Impl& impl = engine.checked();
  NewDatum datum{host_space,   static_cast<std::byte*>(view.data),
                 view.rows,    view.cols,
                 view.ld,      view.dtype,
                 options.keep, options.resident || options.keep || is_private,
                 is_private,   watch};
  const std::vector<Device>& devices = impl.machine.devices;
  if (device != no_device && device >= devices.size())
    fail(Errc::invalid_argument,
         fmt::format("data on device {}: the engine's are 0 to {}", device, devices.size() - 1));
  const SpaceId space = device == no_device ? host_space : devices[device].space;
  if (space == host_space || view.rows == 0 || view.cols == 0) {
    require(view.data != nullptr || view.rows == 0 || view.cols == 0,
            "data() needs the address of its home; temporary() makes a tile without a home");
    return Data(&impl.registrations->add(datum));
  }
  const DeviceId holder = impl.executor->devices().holder(view.data);
  const auto name_of = [&](DeviceId id) {
    return id == no_device ? std::string("the host") : devices[id].name;
  };
  if (holder == no_device || devices[holder].space != space)
    fail(Errc::invalid_argument, fmt::format("data on device '{}': the memory belongs to {}",
                                             devices[device].name, name_of(holder)));
  datum.space = space;
  return Data(&impl.registrations->add(datum));
}

Data Engine::temporary(std::int64_t rows, std::int64_t cols, DType dtype, DataOptions options) {
  return Data(&checked().registrations->add(
      {host_space, nullptr, rows, cols, rows, dtype, options.keep, true, true}));
}

void Engine::remove(std::span<const Data> data, bool discard) {
  checked().registrations->remove(data, discard);
}

Sequence Engine::sequence() { return Sequence(&checked().registrations->add_sequence()); }

void Engine::remove(Sequence sequence) {
  Impl& impl = checked();
  Datum* const datum = sequence.datum_;
  if (!datum) return;
  require(datum->engine == &impl, "remove(): not a sequence of this engine, or one removed before");
  impl.registrations->remove_sequence(*datum);
}

}  // namespace quadriga
