// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/device_packer_cuda.cpp: packing on a CUDA device.
#include <quadriga/error.h>

#include "message/device_packer.h"

namespace quadriga::message {

std::unique_ptr<DevicePacker> DevicePacker::on_cuda(int, std::size_t) {
  fail(Errc::unavailable, "packing on a GPU isn't there yet");
}

}  // namespace quadriga::message
