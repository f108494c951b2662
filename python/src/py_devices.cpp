// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_devices.cpp: memory of emulated devices for messages: given, filled, read, freed.
#include "py_devices.h"

#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <charconv>
#include <optional>

#include "bindings.h"
#include "device/kinds.h"
#include "gil_gate.h"
#include "message/device_moves.h"
#include "message/ports.h"

namespace quadriga::python {
namespace {

using message::DevicePort;
using message::Layout;
using message::MessageBuffer;

// The last one to hold a port ends its threads, which may want the GIL: it waits without. On one of
// these threads the port leaves its end to another.
std::shared_ptr<DevicePort> without_gil(std::shared_ptr<DevicePort> port) {
  DevicePort* const at = port.get();
  return {at, [held = std::move(port)](DevicePort*) mutable {
            std::optional<GilReleased> released;
            if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) released.emplace();
            held.reset();
          }};
}

PyDevices make(const std::string& devices) {
  const GilReleased released;
  // For programs of the package alone: their users have arrays of CuPy or PyTorch.
  constexpr std::string_view one_gpu = "cuda:";
  if (devices.starts_with(one_gpu)) {
    int ordinal = -1;
    const char* const end = devices.data() + devices.size();
    const auto read = std::from_chars(devices.data() + one_gpu.size(), end, ordinal);
    require(read.ec == std::errc() && read.ptr == end && ordinal >= 0, "expected cuda:NUMBER");
    return {message::ports::cuda(ordinal)};
  }
  Machine machine = Machine::parse(devices);
  for (const Device& each : machine.devices)
    require(properties_of(each.kind).messages == MessageMemory::of_machine,
            "Devices are emulated ones; arrays of CuPy and PyTorch are sent as they are");
  return {without_gil(message::ports::open(std::move(machine)))};
}

std::uintptr_t allocate(const PyDevices& self, DeviceId device, std::size_t bytes) {
  const GilReleased released;
  const std::size_t count = self.port->machine().devices.size();
  require(device < count,
          "device " + std::to_string(device) + "; expected 0 to " + std::to_string(count - 1));
  std::byte* const made = self.port->memory().allocate(device, bytes);
  if (!made)
    fail(Errc::too_large, "device " + std::to_string(device) + " has no " + std::to_string(bytes) +
                              " bytes of memory left");
  return reinterpret_cast<std::uintptr_t>(made);
}

void call(const PyDevices& self, std::uintptr_t stream,
          nb::typed<nb::callable, nb::object()> function) {
  // Let go with the GIL, or not at all once Python ends.
  const std::shared_ptr<nb::object> held(new nb::object(std::move(function)), [](nb::object* it) {
    const GilHere gil;
    if (!gil) static_cast<void>(it->release());
    delete it;
  });
  const GilReleased released;
  self.port->streams().call(stream, [held] {
    const GilHere gil;
    if (!gil) return;
    try {
      (*held)();
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a function that a stream called");
    }
  });
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
             self.port->memory().deallocate(device, reinterpret_cast<std::byte*>(at));
           })
      .def("open_stream",
           [](const PyDevices& self, DeviceId device) {
             const GilReleased released;
             return self.port->streams().open(device);
           })
      .def("call", call)
      .def("synchronize",
           [](const PyDevices& self, DeviceId device, std::uintptr_t stream) {
             const GilReleased released;
             self.port->streams().synchronize(device, stream);
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
