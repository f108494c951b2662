// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/device_packer_absent.cpp: stands in for packing on CUDA devices without CUDA.
#include <quadriga/error.h>

#include "message/pack/device_packer.h"

namespace quadriga::message {

std::unique_ptr<DevicePacker> DevicePacker::on_cuda(int, std::size_t) {
  fail(Errc::unavailable, "packing on a GPU: Quadriga was built without CUDA");
}

}  // namespace quadriga::message
