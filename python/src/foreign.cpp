// SPDX-License-Identifier: BSD-3-Clause
// python/src/foreign.cpp: arrays that offer DLPack, described; quadriga.foreign reads them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <utility>

#include "bindings.h"

namespace quadriga::python {
namespace {

/// Holds what the array's library lent, until it goes.
class DLPack {
 public:
  explicit DLPack(nb::ndarray<nb::ro> array) : array_(std::move(array)) {}

  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(array_.data()); }
  nb::typed<nb::tuple, int, nb::ellipsis> shape() const {
    return tuple_of(
        [this](std::size_t axis) { return static_cast<std::int64_t>(array_.shape(axis)); });
  }
  /// In bytes.
  nb::typed<nb::tuple, int, nb::ellipsis> strides() const {
    const auto item = static_cast<std::int64_t>(array_.itemsize());
    return tuple_of([&](std::size_t axis) { return array_.stride(axis) * item; });
  }
  /// As NumPy writes it: "<f8"; empty if it has no such name.
  std::string dtype() const {
    const nb::dlpack::dtype type = array_.dtype();
    const int bytes = type.bits / 8;
    if (type.lanes != 1) return {};
    switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
      case nb::dlpack::dtype_code::Int:
        return "<i" + std::to_string(bytes);
      case nb::dlpack::dtype_code::UInt:
        return "<u" + std::to_string(bytes);
      case nb::dlpack::dtype_code::Float:
        return "<f" + std::to_string(bytes);
      case nb::dlpack::dtype_code::Complex:
        return "<c" + std::to_string(bytes);
      case nb::dlpack::dtype_code::Bool:
        return "|b1";
      default:
        return {};
    }
  }

 private:
  template <class Value>
  nb::typed<nb::tuple, int, nb::ellipsis> tuple_of(Value&& value) const {
    nb::list values;
    for (std::size_t axis = 0; axis < array_.ndim(); ++axis) values.append(value(axis));
    return nb::typed<nb::tuple, int, nb::ellipsis>(nb::tuple(values));
  }

  nb::ndarray<nb::ro> array_;
};

}  // namespace

void bind_foreign(nb::module_& module) {
  nb::class_<DLPack>(module, "DLPack", "Memory that another library's array lends.")
      .def(nb::init<nb::ndarray<nb::ro>>(), nb::arg("array"),
           nb::sig("def __init__(self, array: object) -> None"))
      .def_prop_ro("address", &DLPack::address)
      .def_prop_ro("shape", &DLPack::shape)
      .def_prop_ro("strides", &DLPack::strides)
      .def_prop_ro("dtype", &DLPack::dtype);
}

}  // namespace quadriga::python
