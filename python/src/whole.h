// SPDX-License-Identifier: BSD-3-Clause
// python/src/whole.h: ranks, tags and roots, given as anything that Python takes for an integer.
#pragma once

#include <nanobind/nanobind.h>

#include <limits>

namespace quadriga::python {

/// The number that an argument is. Errors: InvalidType or InvalidArgument, naming it.
inline int whole(const char* name, nanobind::handle value) {
  namespace nb = nanobind;
  // Nearly always one of Python's own.
  if (PyLong_CheckExact(value.ptr())) {
    int overflow = 0;
    const long number = PyLong_AsLongAndOverflow(value.ptr(), &overflow);
    const bool fits = overflow == 0 && number >= std::numeric_limits<int>::min() &&
                      number <= std::numeric_limits<int>::max();
    if (fits) return static_cast<int>(number);
  }
  const nb::object checked = nb::module_::import_("quadriga.arguments")
                                 .attr("whole")(name, value, std::numeric_limits<int>::min(),
                                                std::numeric_limits<int>::max());
  return nb::cast<int>(checked);
}

}  // namespace quadriga::python
