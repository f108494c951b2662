// SPDX-License-Identifier: BSD-3-Clause
// tests/device_homes.h: memory on emulated devices that isn't the engine's: what stands for arrays
// that somebody else made on a GPU.
#pragma once

#include <quadriga/engine.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "device/factory.h"
#include "engine/engine_access.h"

namespace quadriga {

/// Outlives the engine that is made with around(); what it hands out goes with that engine.
class DeviceHomes {
 public:
  /// The same options, on a backend whose devices have `bytes` more than the machine says: the
  /// arenas take what the machine says, and the rest is for homes.
  WrappedOptions around(WrappedOptions options, std::size_t bytes = std::size_t{64} << 20) {
    const auto wrap = std::move(options.wrap_backend);
    BackendOptions backend_options;
    backend_options.virtual_clock = options.virtual_clock;
    backend_options.virtual_options = {.compute = options.compute, .protect = options.protect};
    options.wrap_backend = [this, wrap, backend_options, bytes](std::unique_ptr<Backend> given) {
      std::unique_ptr<Backend> made = enlarged(*given, backend_options, bytes);
      backend_ = made.get();
      if (!made) made = std::move(given);
      return wrap ? wrap(std::move(made)) : std::move(made);
    };
    return options;
  }

  /// Null for a device without memory of its own, or a real one.
  std::byte* take(DeviceId device, std::size_t bytes) {
    return backend_ ? backend_->allocate(device, bytes) : nullptr;
  }
  /// Whether memory is a device's.
  bool holds(const void* memory) const { return backend_ && backend_->holder(memory) != no_device; }

 private:
  static std::unique_ptr<Backend> enlarged(const Backend& given, const BackendOptions& options,
                                           std::size_t bytes) {
    Machine machine = given.machine();
    bool is_emulated = false;
    for (Device& device : machine.devices) {
      is_emulated |= device.kind == DeviceKind::emulated;
      if (device.space != host_space) device.memory_bytes += bytes;
    }
    return is_emulated ? make_backend(machine, options) : nullptr;
  }

  Backend* backend_ = nullptr;
};

}  // namespace quadriga
