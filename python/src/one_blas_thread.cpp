// SPDX-License-Identifier: BSD-3-Clause
// python/src/one_blas_thread.cpp: NumPy's and SciPy's BLAS run one thread while a body runs.
//
// Invariants
//   1. `state` is used by who holds the GIL. Python runs in between only where libraries are looked
//      for, before a body counts as inside, and in `others`, which has a lock of its own.
//   2. `libraries` are limited exactly while `inside` isn't zero.
#include "one_blas_thread.h"

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

/// A library that tells and takes a number of threads by a function each.
struct Library {
  int (*get)();
  void (*set)(int);
  int before = 1;
};

struct BlasState {
  int inside = 0;
  Py_ssize_t modules = -1;  ///< That were imported when libraries were looked for.
  std::vector<Library> libraries;
  PyObject* others = nullptr;  ///< Limits and restores those without such functions; null: none.
};
BlasState state;

using Functions = std::pair<std::uintptr_t, std::uintptr_t>;

/// By quadriga.blas.find(), which takes a millisecond. Another body may begin meanwhile: what it
/// has limited stays as it is until it ends.
void look(Py_ssize_t modules) {
  const auto found = nb::cast<std::pair<std::vector<Functions>, nb::object>>(
      nb::module_::import_("quadriga.blas").attr("find")());
  if (state.inside > 0) return;
  state.modules = modules;
  state.libraries.clear();
  for (const auto& [get, set] : found.first)
    state.libraries.push_back(
        {reinterpret_cast<int (*)()>(get), reinterpret_cast<void (*)(int)>(set)});
  Py_CLEAR(state.others);
  if (!found.second.is_none()) state.others = nb::object(found.second).release().ptr();
}

void restore_libraries() {
  for (const Library& each : state.libraries)
    if (each.before != 1) each.set(each.before);
}

/// The first body inside.
void limit() {
  for (Library& each : state.libraries) {
    each.before = each.get();
    if (each.before != 1) each.set(1);
  }
  if (state.others == nullptr) return;
  try {
    nb::handle(state.others).attr("limit")();
  } catch (...) {
    if (--state.inside == 0) restore_libraries();
    throw;
  }
}

void begin_one_blas_thread() {
  if (state.inside == 0) {
    kernels::use_one_blas_thread();
    const Py_ssize_t modules = PyDict_Size(PyImport_GetModuleDict());
    if (modules != state.modules) look(modules);
  }
  if (state.inside++ == 0) limit();
}

void end_one_blas_thread() {
  if (state.inside == 0 || --state.inside > 0) return;  // 0: the body forked, and this is the child
  restore_libraries();
  if (state.others != nullptr) nb::handle(state.others).attr("restore")();
}

}  // namespace

OneBlasThread::OneBlasThread() { begin_one_blas_thread(); }
OneBlasThread::~OneBlasThread() {
  try {
    end_one_blas_thread();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("restoring the number of threads of a BLAS");
  }
}

void bind_one_blas_thread(nb::module_& module) {
  module.def("begin_one_blas_thread", &begin_one_blas_thread);
  module.def("end_one_blas_thread", &end_one_blas_thread);
  module.def("forget_blas_threads", [] { state.inside = 0; });
}

}  // namespace quadriga::python
