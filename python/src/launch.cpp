// SPDX-License-Identifier: BSD-3-Clause
// python/src/launch.cpp: kernels from CUDA sources as codelets launch them.
#include "launch.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <quadriga/error.h>

#include <map>
#include <tuple>
#include <utility>

#include "bindings.h"

namespace quadriga::python {
namespace {

/// quadriga::Tile of python/quadriga/nvrtc.py.
struct DeviceTile {
  void* data;
  std::int64_t rows, cols, row_step, col_step;
};
static_assert(sizeof(DeviceTile) == 40);

std::string as_string(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

std::shared_ptr<DeviceKernel> make_kernel(
    std::string title,
    const nb::typed<nb::dict, int, nb::typed<nb::tuple, nb::bytes, nb::str>>& by) {
  std::map<int, DeviceKernel::Image> images;
  for (const auto& [architecture, image] : by)
    images[nb::cast<int>(architecture)] = {as_string(nb::cast<nb::bytes>(image[0])),
                                           nb::cast<std::string>(image[1])};
  return std::make_shared<DeviceKernel>(std::move(title), std::move(images));
}

using Extent = std::array<unsigned, 3>;
using ShapeTuple =
    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, std::int64_t>;

std::unique_ptr<LaunchPlan> make_plan(std::shared_ptr<DeviceKernel> kernel, Extent grid,
                                      Extent block, unsigned shared_bytes,
                                      const std::vector<ShapeTuple>& operands,
                                      const nb::typed<nb::list, nb::bytes>& values) {
  std::vector<LaunchPlan::Shape> shapes;
  for (const auto& [rows, cols, row_step, col_step, ld_axis, unit] : operands)
    shapes.push_back({rows, cols, row_step, col_step, ld_axis, unit});
  std::vector<std::string> bytes;
  for (const nb::handle value : values) bytes.push_back(as_string(nb::cast<nb::bytes>(value)));
  return std::make_unique<LaunchPlan>(std::move(kernel),
                                      DeviceKernel::Shape{grid, block, shared_bytes},
                                      std::move(shapes), std::move(bytes));
}

}  // namespace

void LaunchPlan::queue(const Arguments& arguments) const {
  std::vector<DeviceTile> tiles;
  tiles.reserve(operands_.size());
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const Shape& shape = operands_[i];
    const View& tile = arguments.operands[i];
    tiles.push_back({tile.data, shape.rows, shape.cols, shape.row_step, shape.col_step});
    if (shape.ld_axis >= 0) {
      if (tile.ld % shape.unit != 0)
        fail(Errc::internal, "columns of a tile begin between two elements of its array");
      (shape.ld_axis == 0 ? tiles.back().row_step : tiles.back().col_step) = tile.ld / shape.unit;
    }
    pointers.push_back(&tiles.back());
  }
  // Kernels read their parameters, they don't write them.
  for (const std::string& value : values_) pointers.push_back(const_cast<char*>(value.data()));
  kernel_->launch(arguments.stream, shape_, pointers);
}

void bind_launch(nb::module_& module) {
  nb::class_<DeviceKernel>(module, "DeviceKernel", "A compiled kernel, by architecture.")
      .def(nb::new_(&make_kernel), nb::arg("title"), nb::arg("images"));
  nb::class_<LaunchPlan>(module, "LaunchPlan", "How a task's kernel is launched.")
      .def(nb::new_(&make_plan), nb::arg("kernel"), nb::arg("grid"), nb::arg("block"),
           nb::arg("shared_bytes"), nb::arg("operands"), nb::arg("values"));
  module.def("cuda_architectures", cuda_architectures);
}

}  // namespace quadriga::python
