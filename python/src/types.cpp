// SPDX-License-Identifier: BSD-3-Clause
// python/src/types.cpp: element types and access modes.
#include <nanobind/nanobind.h>
#include <quadriga/types.h>

#include "bindings.h"

namespace quadriga::python {

void bind_types(nb::module_& module) {
  nb::enum_<DType>(module, "DType", "Types of elements.")
      .value("float32", DType::float32)
      .value("float64", DType::float64)
      .value("complex64", DType::complex64)
      .value("complex128", DType::complex128)
      .value("bytes", DType::bytes);
  nb::enum_<Access>(module, "Access", "How a task touches an operand.")
      .value("read", Access::read)
      .value("write", Access::write)
      .value("update", Access::update)
      .value("commute", Access::commute)
      .value("reduce", Access::reduce);
}

}  // namespace quadriga::python
