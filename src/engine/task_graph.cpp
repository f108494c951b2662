// SPDX-License-Identifier: BSD-3-Clause
// src/engine/task_graph.cpp: unrolls graphs that are given as functions of task indices.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <quadriga/error.h>
#include <quadriga/task_graph.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace quadriga {
namespace {

/// Submits the tasks of one class and step after the other.
class Unroller {
 public:
  Unroller(Engine& engine, const std::function<bool()>& stop) : engine_(engine), stop_(stop) {}

  std::int64_t submitted() const { return submitted_; }
  bool is_stopped() const { return stopped_; }

  void run(const TaskClass& tasks, std::int64_t step) {
    indices_.assign(1, step);
    descend(tasks);
  }

 private:
  /// Errors name the task, as far as its indices are known.
  template <class Work>
  auto named(const TaskClass& tasks, Work&& work) const {
    try {
      return work();
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("task {}({}): {}", tasks.codelet->name,
                                            fmt::join(indices_, ", "), error.what()));
    }
  }

  /// Once for each value of the index that comes next; a task once there is none.
  void descend(const TaskClass& tasks) {
    const std::size_t depth = indices_.size() - 1;
    if (depth == tasks.ranges.size()) return submit(tasks);
    const TaskRange range = named(tasks, [&] { return tasks.ranges[depth](indices_); });
    for (std::int64_t i = range.begin; i < range.end && !stopped_; ++i) {
      indices_.push_back(i);
      descend(tasks);
      indices_.pop_back();
    }
  }

  void submit(const TaskClass& tasks) {
    stopped_ = stop_ && stop_();
    if (stopped_) return;
    named(tasks, [&] {
      operands_.clear();
      params_.clear();
      tasks.operands(indices_, operands_);
      if (tasks.params) tasks.params(indices_, params_);
      const SubmitOptions options = tasks.options ? tasks.options(indices_) : SubmitOptions{};
      engine_.submit(*tasks.codelet, operands_, params_, options);
    });
    ++submitted_;
  }

  Engine& engine_;
  const std::function<bool()>& stop_;
  bool stopped_ = false;  ///< Once `stop` has said so; it isn't asked again.
  std::int64_t submitted_ = 0;
  std::vector<std::int64_t> indices_;
  std::vector<Operand> operands_;
  std::vector<std::byte> params_;
};

}  // namespace

DataGrid::DataGrid(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols) {
  if (rows < 0 || cols < 0)
    fail(Errc::invalid_argument,
         fmt::format("a grid of {} x {}: neither may be negative", rows, cols));
  if (cols > 0 && rows > std::numeric_limits<std::int64_t>::max() / cols)
    fail(Errc::invalid_argument,
         fmt::format("a grid of {} x {}: expected less than 2^63 data", rows, cols));
  data_.resize(static_cast<std::size_t>(rows * cols));
}

std::size_t DataGrid::place(std::int64_t row, std::int64_t col) const {
  if (row < 0 || row >= rows_ || col < 0 || col >= cols_)
    fail(Errc::invalid_argument,
         fmt::format("data ({}, {}) of a grid of {} x {}", row, col, rows_, cols_));
  return static_cast<std::size_t>(row * cols_ + col);
}

Data& DataGrid::operator()(std::int64_t row, std::int64_t col) { return data_[place(row, col)]; }
const Data& DataGrid::operator()(std::int64_t row, std::int64_t col) const {
  return data_[place(row, col)];
}

TaskGraph::TaskGraph(std::int64_t steps) : steps_(steps) {
  if (steps < 0)
    fail(Errc::invalid_argument, fmt::format("a graph of {} steps: expected 0 or more", steps));
}

void TaskGraph::add(TaskClass tasks) {
  require(tasks.codelet, "a class of tasks needs a codelet");
  if (!tasks.operands)
    fail(Errc::invalid_argument,
         fmt::format("class {}: a function that gives a task's operands is missing",
                     tasks.codelet->name));
  for (std::size_t i = 0; i < tasks.ranges.size(); ++i)
    if (!tasks.ranges[i])
      fail(Errc::invalid_argument,
           fmt::format("class {}: the range of index {} is missing", tasks.codelet->name, i + 1));
  classes_.push_back(std::move(tasks));
}

std::int64_t TaskGraph::submit(Engine& engine, const std::function<bool()>& stop) const {
  Unroller unroller(engine, stop);
  for (std::int64_t step = 0; step < steps_; ++step)
    for (const TaskClass& tasks : classes_) {
      if (unroller.is_stopped()) return unroller.submitted();
      unroller.run(tasks, step);
    }
  return unroller.submitted();
}

}  // namespace quadriga
