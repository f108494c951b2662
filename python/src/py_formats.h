// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_formats.h: adds readers of files to the extension module.
#pragma once

#include <nanobind/nanobind.h>

namespace quadriga::python {

void bind_formats(nanobind::module_& module);

}  // namespace quadriga::python
