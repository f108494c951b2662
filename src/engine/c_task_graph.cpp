// SPDX-License-Identifier: BSD-3-Clause
// src/engine/c_task_graph.cpp: task_graph_c.h; functions of C as those of a TaskGraph.
#include <quadriga/task_graph_c.h>

#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/task_graph.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "engine/c_engine.h"
#include "engine/c_tasks.h"

struct quadriga_task_graph {
  /// Tasks of one kind, as they were given.
  struct Class {
    const quadriga_codelet* codelet;
    std::int64_t further_indices;
    quadriga_index_range range;
    quadriga_task_at task_at;
    std::int64_t params_bytes;
    void* context;
  };
  std::int64_t steps;
  std::vector<Class> classes;
};

namespace {

using quadriga::c_guarded;
using quadriga::Engine;
using quadriga::Errc;
using quadriga::fail;
using quadriga::Operand;
using quadriga::refuse;
using quadriga::SubmitOptions;
using quadriga::TaskIndices;
using quadriga::TaskRange;
using ClassOfC = quadriga_task_graph::Class;

/// Asks the functions of a class, and keeps what they say of one task.
class AskedOfC {
 public:
  AskedOfC(const ClassOfC& of, Engine& engine)
      : of_(of), engine_(engine), data_(of.codelet->codelet.access.size()) {}

  TaskRange range(TaskIndices known) const {
    TaskRange range;
    check("range", of_.range(known.data(), static_cast<std::int64_t>(known.size()), of_.context,
                             &range.begin, &range.end));
    return range;
  }

  void task(TaskIndices indices, std::vector<Operand>& operands) {
    data_.assign(data_.size(), nullptr);
    params_.assign(static_cast<std::size_t>(of_.params_bytes), std::byte{});
    quadriga_submit_options options{};
    check("task_at", of_.task_at(indices.data(), static_cast<std::int64_t>(indices.size()),
                                 of_.context, data_.data(), params_.data(), &options));
    for (std::size_t i = 0; i < data_.size(); ++i) {
      if (!data_[i]) fail(Errc::invalid_argument, fmt::format("data[{}] was not set", i));
      if (data_[i]->engine != &engine_)
        fail(Errc::invalid_argument, fmt::format("data[{}] is of another engine", i));
      operands.push_back({data_[i]->data, of_.codelet->codelet.access[i]});
    }
    after_.clear();
    options_ = options_of(options, engine_, after_);
  }

  const SubmitOptions& options() const { return options_; }
  const std::vector<std::byte>& params() const { return params_; }

 private:
  static void check(const char* which, int status) {
    if (status != 0)
      fail(Errc::invalid_argument, fmt::format("its function `{}` returned {}", which, status));
  }

  const ClassOfC of_;  ///< A copy: what is added to a graph moves its classes.
  Engine& engine_;
  std::vector<quadriga_data*> data_;
  std::vector<std::byte> params_;
  std::vector<quadriga::Future> after_;
  SubmitOptions options_;
};

/// `operands` comes first: it asks for the whole task.
quadriga::TaskClass class_of(const ClassOfC& of, AskedOfC& asked) {
  quadriga::TaskClass tasks;
  tasks.codelet = &of.codelet->codelet;
  tasks.ranges.assign(static_cast<std::size_t>(of.further_indices),
                      [&](TaskIndices known) { return asked.range(known); });
  tasks.operands = [&](TaskIndices indices, std::vector<Operand>& to) { asked.task(indices, to); };
  tasks.options = [&](TaskIndices) { return asked.options(); };
  tasks.params = [&](TaskIndices, std::vector<std::byte>& to) { to = asked.params(); };
  return tasks;
}

}  // namespace

extern "C" {

int64_t quadriga_task_graph_create(int64_t steps, quadriga_task_graph** graph) {
  return c_guarded([&]() -> std::int64_t {
    if (!graph) refuse(2, "the address for the graph is NULL");
    *graph = nullptr;
    if (steps < 0) refuse(1, fmt::format("{} steps; expected 0 or more", steps));
    *graph = new quadriga_task_graph{steps, {}};
    return 0;
  });
}

int64_t quadriga_task_graph_add(quadriga_task_graph* graph, const quadriga_codelet* codelet,
                                int64_t further_indices, quadriga_index_range range,
                                quadriga_task_at task_at, int64_t params_bytes, void* context) {
  return c_guarded([&]() -> std::int64_t {
    if (!graph) refuse(1, "the graph is NULL; expected what quadriga_task_graph_create made");
    if (!codelet) refuse(2, "the codelet is NULL; expected what quadriga_codelet_create made");
    constexpr std::int64_t most_indices = 64;
    if (further_indices < 0 || further_indices > most_indices)
      refuse(3, fmt::format("{} further indices; expected 0 to {}", further_indices, most_indices));
    if (further_indices > 0 && !range) refuse(4, "`range` is NULL, and there are further indices");
    if (!task_at) refuse(5, "`task_at` is NULL; expected what says which data a task accesses");
    if (params_bytes < 0)
      refuse(6, fmt::format("{} bytes of parameters; expected 0 or more", params_bytes));
    graph->classes.push_back({codelet, further_indices, range, task_at, params_bytes, context});
    return 0;
  });
}

int64_t quadriga_task_graph_submit(quadriga_engine* engine, const quadriga_task_graph* graph,
                                   quadriga_stop stop, void* stop_context, int64_t* submitted) {
  return c_guarded([&]() -> std::int64_t {
    if (submitted) *submitted = 0;
    Engine& on = quadriga::opened(engine);
    if (!graph) refuse(2, "the graph is NULL; expected what quadriga_task_graph_create made");
    quadriga::TaskGraph made(graph->steps);
    std::deque<AskedOfC> asked;
    for (const ClassOfC& each : graph->classes)
      made.add(class_of(each, asked.emplace_back(each, on)));
    const auto is_stopped = [&] { return stop && stop(stop_context) != 0; };
    const std::int64_t count = made.submit(on, is_stopped);
    if (submitted) *submitted = count;
    return 0;
  });
}

void quadriga_task_graph_free(quadriga_task_graph* graph) { delete graph; }

}  // extern "C"
