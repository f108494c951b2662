// SPDX-License-Identifier: BSD-3-Clause
// src/engine/division.cpp: a cpu variant that divides its task where cores are idle.
#include <fmt/format.h>
#include <quadriga/division.h>
#include <quadriga/error.h>

#include <utility>

#include "engine/crew.h"

namespace quadriga {

void set_division(Codelet& codelet, Divide divide, Divided when) {
  if (!codelet.cpu || codelet.submits || codelet.detaches || !divide)
    fail(Errc::invalid_argument,
         fmt::format("set_division: codelet '{}' needs a cpu variant that neither submits nor "
                     "detaches, and a function that divides",
                     codelet.name));
  codelet.cpu = [whole = std::move(codelet.cpu), divide = std::move(divide), when,
                 name = codelet.name, access = codelet.access](const Arguments& arguments) {
    Crew* const crew = Crew::current();
    const bool together = crew && crew->divides();
    if (!together && when == Divided::if_idle) return whole(arguments);
    Subgraph graph(name, access, arguments.operands);
    Division division(graph);
    divide(arguments, division);
    if (graph.size() == 0) return whole(arguments);
    if (together) return crew->run(graph);
    for (std::size_t i = 0; i < graph.size(); ++i) graph.codelet(i).cpu(graph.arguments(i));
  };
}

}  // namespace quadriga
