// SPDX-License-Identifier: BSD-3-Clause
// src/engine/division.cpp: a cpu variant that divides its task where cores are idle.
#include <fmt/format.h>
#include <quadriga/division.h>
#include <quadriga/error.h>

#include <utility>

#include "engine/crew.h"

namespace quadriga {

void set_division(Codelet& codelet, Divide divide) {
  if (!codelet.cpu || codelet.submits || codelet.detaches || !divide)
    fail(Errc::invalid_argument,
         fmt::format("set_division: codelet '{}' needs a cpu variant that neither submits nor "
                     "detaches, and a function that divides",
                     codelet.name));
  codelet.cpu = [whole = std::move(codelet.cpu), divide = std::move(divide), name = codelet.name,
                 access = codelet.access](const Arguments& arguments) {
    Crew* const crew = Crew::current();
    if (!crew || !crew->divides()) return whole(arguments);
    Subgraph graph(name, access, arguments.operands);
    Division division(graph);
    divide(arguments, division);
    if (graph.size() == 0) return whole(arguments);
    crew->run(graph);
  };
}

}  // namespace quadriga
