// SPDX-License-Identifier: BSD-3-Clause
// python/src/module.cpp: the extension module quadriga._core; the package quadriga wraps it.
#include "bindings.h"
#include "gate.h"

NB_MODULE(_core, module) {
  module.attr("version") = QUADRIGA_VERSION;
  quadriga::python::bind_gate(module);
  quadriga::python::bind_errors(module);
  quadriga::python::bind_types(module);
  quadriga::python::bind_config(module);
  quadriga::python::bind_machine(module);
  quadriga::python::bind_codelet(module);
  quadriga::python::bind_engine(module);
  quadriga::python::bind_linalg(module);
}
