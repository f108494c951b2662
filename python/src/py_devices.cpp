// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_devices.cpp: memory of emulated devices for messages: given, filled, read, freed.
#include "py_devices.h"

#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <charconv>

#include "bindings.h"
#include "gil_gate.h"
#include "message/device_moves.h"

namespace quadriga::python {
namespace {

using message::DevicePort;
using message::Layout;
using message::MessageBuffer;

PyDevices make(const std::string& devices) {
  const GilReleased released;
  // For programs of the package alone: their users have arrays of CuPy or PyTorch.
  constexpr std::string_view one_gpu = "cuda:";
  if (devices.starts_with(one_gpu)) {
    int ordinal = -1;
    const char* const end = devices.data() + devices.size();
    const auto read = std::from_chars(devices.data() + one_gpu.size(), end, ordinal);
    require(read.ec == std::errc() && read.ptr == end && ordinal >= 0, "expected cuda:NUMBER");
    return {DevicePort::cuda(ordinal)};
  }
  Machine machine = Machine::parse(devices);
  for (const Device& each : machine.devices)
    require(each.kind == DeviceKind::emulated,
            "Devices are emulated ones; arrays of CuPy and PyTorch are sent as they are");
  return {DevicePort::open(std::move(machine))};
}

std::uintptr_t allocate(const PyDevices& self, DeviceId device, std::size_t bytes) {
  const GilReleased released;
  require(device < self.port->machine().devices.size(), "there is no such device");
  std::byte* const made = self.port->allocate(device, bytes);
  if (!made) fail(Errc::too_large, "the device has not so much memory left");
  return reinterpret_cast<std::uintptr_t>(made);
}

MessageBuffer place(const PyDevices& self, DeviceId device, std::uintptr_t at,
                    const Layout& layout) {
  return {layout, reinterpret_cast<std::byte*>(at), self.port, device};
}

}  // namespace

void bind_devices(nb::module_& module) {
  nb::class_<PyDevices>(module, "MessageDevices", "Emulated devices whose memory messages use.")
      .def("__init__",
           [](PyDevices* self, const std::string& devices) { new (self) PyDevices(make(devices)); })
      .def_prop_ro("count",
                   [](const PyDevices& self) { return self.port->machine().devices.size(); })
      .def("allocate", allocate)
      .def("deallocate",
           [](const PyDevices& self, DeviceId device, std::uintptr_t at) {
             const GilReleased released;
             self.port->deallocate(device, reinterpret_cast<std::byte*>(at));
           })
      .def("read",
           [](const PyDevices& self, DeviceId device, std::uintptr_t at, std::uintptr_t into,
              const Layout& layout) {
             const GilReleased released;
             const MessageBuffer from = place(self, device, at, layout);
             message::read_all(from, {reinterpret_cast<std::byte*>(into), from.bytes()});
           })
      .def("write", [](const PyDevices& self, DeviceId device, std::uintptr_t at,
                       std::uintptr_t from, const Layout& layout) {
        const GilReleased released;
        const MessageBuffer into = place(self, device, at, layout);
        message::write_all(into, {reinterpret_cast<const std::byte*>(from), into.bytes()});
      });
}

}  // namespace quadriga::python
