// SPDX-License-Identifier: BSD-3-Clause
// python/src/bindings.h: what each binding file adds to the extension module quadriga._core.
#pragma once

#include <nanobind/nanobind.h>
#include <quadriga/report.h>

#include "text.h"

namespace quadriga {
struct MessageCounters;
}  // namespace quadriga

namespace quadriga::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);
void bind_types(nb::module_& module);
void bind_config(nb::module_& module);
void bind_machine(nb::module_& module);
void bind_launch(nb::module_& module);
void bind_task_record(nb::module_& module);
void bind_codelet(nb::module_& module);
void bind_engine(nb::module_& module);
void bind_linalg(nb::module_& module);
void bind_foreign(nb::module_& module);
void bind_one_blas_thread(nb::module_& module);
void bind_host_buffers(nb::module_& module);
void bind_pipeline(nb::module_& module);
void bind_sparse(nb::module_& module);
void bind_sparse_vectors(nb::module_& module);
void bind_layout(nb::module_& module);
void bind_message(nb::module_& module);
void bind_message_tasks(nb::module_& module);
void bind_rerun(nb::module_& module);

/// Raises the Python exception that stands for a failure of ours; false if it isn't ours.
bool raise_as_python(const std::exception_ptr& error);

/// The counters as quadriga.counters turns them into dataclasses.
nb::typed<nb::dict, nb::str, nb::any> counters_as_dict(const Counters& counters);
nb::typed<nb::dict, nb::str, nb::any> messages_as_dict(const MessageCounters& counters);

}  // namespace quadriga::python
