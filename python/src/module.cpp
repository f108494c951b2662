// SPDX-License-Identifier: BSD-3-Clause
// python/src/module.cpp: the extension module quadriga._core; the package quadriga wraps it.
#include <nanobind/stl/map.h>

#include <ios>
#include <map>
#include <string>

#include "base/unwinder.h"
#include "bindings.h"
#include "gil_gate.h"
#include "linalg/kernels/cuda_libraries.h"
#include "py_formats.h"

namespace {

/// Headers since g++ 13 leave the standard streams to the library. One before that leaves them to
/// each program, and what other extensions write would end the process.
const std::ios_base::Init standard_streams;

std::map<std::string, std::string> cuda_libraries() {
  std::map<std::string, std::string> absences;
  for (const auto& library : quadriga::kernels::cuda_libraries())
    absences.emplace(library.name, library.absence);
  return absences;
}

}  // namespace

NB_MODULE(_core, module) {
  module.attr("version") = QUADRIGA_VERSION;
  module.attr("foreign_unwinder") = quadriga::foreign_unwinder();
  quadriga::python::bind_gate(module);
  quadriga::python::bind_errors(module);
  quadriga::python::bind_types(module);
  quadriga::python::bind_config(module);
  quadriga::python::bind_machine(module);
  quadriga::python::bind_launch(module);
  quadriga::python::bind_task_record(module);
  quadriga::python::bind_codelet(module);
  quadriga::python::bind_engine(module);
  quadriga::python::bind_linalg(module);
  quadriga::python::bind_foreign(module);
  quadriga::python::bind_one_blas_thread(module);
  quadriga::python::bind_host_buffers(module);
  quadriga::python::bind_formats(module);
  quadriga::python::bind_pipeline(module);
  quadriga::python::bind_sparse(module);
  quadriga::python::bind_sparse_vectors(module);
  quadriga::python::bind_layout(module);
  quadriga::python::bind_message(module);
  quadriga::python::bind_message_tasks(module);
  quadriga::python::bind_rerun(module);
  module.def(
      "cuda_libraries", cuda_libraries,
      "Why each library that the CUDA part needs can't be opened, empty if it can; none in a "
      "build without CUDA.");
}
