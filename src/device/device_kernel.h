// SPDX-License-Identifier: BSD-3-Clause
// src/device/device_kernel.h: kernels compiled at run time, and their launch.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace quadriga {

/// A kernel in code for GPUs of some architectures. Any thread.
class DeviceKernel {
 public:
  struct Image {
    std::string code;  ///< As a compiler wrote it: a cubin, or PTX.
    std::string name;  ///< Of the kernel in it.
  };
  /// How a kernel is spread over a device; a grid with a zero runs nothing.
  struct Shape {
    std::array<unsigned, 3> grid{1, 1, 1};
    std::array<unsigned, 3> block{1, 1, 1};
    unsigned shared_bytes = 0;
  };

  /// By architecture: 90 for devices of compute capability 9.0. `title` names it in errors.
  DeviceKernel(std::string title, std::map<int, Image> images);
  /// The kernel must have ended wherever it was launched.
  ~DeviceKernel();
  DeviceKernel(const DeviceKernel&) = delete;
  DeviceKernel& operator=(const DeviceKernel&) = delete;

  /// Queues it on a stream of the current device; `values` point to its parameters in order.
  ///
  /// Async:   returns once queued, but for the first launch on an architecture, which loads it.
  /// Errors:  unavailable without an image for the device; task_failed if it can't be launched so.
  void launch(void* stream, const Shape& shape, std::span<void*> values);

 private:
  struct Loaded;
  void* kernel_for(int architecture);

  const std::string title_;
  const std::map<int, Image> images_;
  std::unique_ptr<Loaded> loaded_;
};

/// The architectures of the CUDA devices that this process sees, each once; none: empty.
std::vector<int> cuda_architectures();

/// The number of the CUDA device that is current in this thread, as the CUDA runtime counts.
int current_cuda_device();

}  // namespace quadriga
