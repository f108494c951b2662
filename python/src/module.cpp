// SPDX-License-Identifier: BSD-3-Clause
// python/src/module.cpp: the extension module quadriga._core.
#include <nanobind/nanobind.h>

NB_MODULE(_core, module) { module.attr("__version__") = QUADRIGA_VERSION; }
