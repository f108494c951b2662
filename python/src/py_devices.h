// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_devices.h: emulated devices whose memory messages use.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "message/device_port.h"

namespace quadriga::python {

struct PyDevices {
  std::shared_ptr<message::DevicePort> port;
};

void bind_devices(nanobind::module_& module);

}  // namespace quadriga::python
