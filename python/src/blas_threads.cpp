// SPDX-License-Identifier: BSD-3-Clause
// python/src/blas_threads.cpp: how many threads the BLAS libraries of the process use, set quickly.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings.h"
#include "linalg/kernels/blas_threads.h"

namespace quadriga::python {
namespace {

/// Libraries that tell and take a number of threads by a function each. Its caller holds a lock.
class BlasThreads {
 public:
  explicit BlasThreads(const std::vector<std::pair<std::uintptr_t, std::uintptr_t>>& functions) {
    for (const auto& [get, set] : functions)
      libraries_.push_back(
          {reinterpret_cast<int (*)()>(get), reinterpret_cast<void (*)(int)>(set)});
  }

  /// One thread each, until restore().
  void limit() {
    for (Library& each : libraries_) {
      each.before = each.get();
      if (each.before != 1) each.set(1);
    }
  }
  void restore() {
    for (const Library& each : libraries_)
      if (each.before != 1) each.set(each.before);
  }

 private:
  struct Library {
    int (*get)();
    void (*set)(int);
    int before = 1;
  };
  std::vector<Library> libraries_;
};

}  // namespace

void bind_blas_threads(nb::module_& module) {
  nb::class_<BlasThreads>(module, "BlasThreads", "Numbers of threads of BLAS libraries.")
      .def(nb::init<const std::vector<std::pair<std::uintptr_t, std::uintptr_t>>&>(),
           nb::arg("functions"))
      .def("limit", &BlasThreads::limit)
      .def("restore", &BlasThreads::restore);
  module.def("use_one_blas_thread", kernels::use_one_blas_thread);
}

}  // namespace quadriga::python
