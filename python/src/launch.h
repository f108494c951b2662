// SPDX-License-Identifier: BSD-3-Clause
// python/src/launch.h: what a task of a CUDA source needs when it is launched, without Python.
#pragma once

#include <quadriga/codelet.h>

#include <memory>
#include <string>
#include <vector>

#include "device/device_kernel.h"

namespace quadriga::python {

/// Made when a task is submitted, kept by its record; used by the driver, which has no GIL.
class LaunchPlan {
 public:
  /// An operand as the kernel sees it: the shape and the strides of the user's array.
  struct Shape {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t row_step = 0;  ///< In elements.
    std::int64_t col_step = 0;
    int ld_axis = -1;       ///< Whose step is the tile's leading dimension: 0 rows, 1 columns.
    std::int64_t unit = 1;  ///< How many of the engine's elements make one of the array's.
  };

  LaunchPlan(std::shared_ptr<DeviceKernel> kernel, DeviceKernel::Shape shape,
             std::vector<Shape> operands, std::vector<std::string> values)
      : kernel_(std::move(kernel)),
        shape_(shape),
        operands_(std::move(operands)),
        values_(std::move(values)) {}

  /// Queues the kernel: one Tile an operand, then the values. Errors: as DeviceKernel::launch().
  void queue(const Arguments& arguments) const;

 private:
  std::shared_ptr<DeviceKernel> kernel_;
  DeviceKernel::Shape shape_;
  std::vector<Shape> operands_;
  std::vector<std::string> values_;  // The bytes of each.
};

}  // namespace quadriga::python
