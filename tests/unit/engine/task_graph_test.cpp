// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/task_graph_test.cpp: graphs as functions of task indices run as the same graph
// submitted by hand, and are made as the window moves.
#include <gtest/gtest.h>
#include <quadriga/task_graph.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

constexpr std::int64_t edge = 5;

/// Tasks on a grid whose results depend on their order: a factorization's operands, and the mean of
/// what is read and updated in place of its kernels.
class TaskGraphTest : public EngineTest {
 protected:
  void SetUp() override { refill(); }

  void refill() {
    values_.assign(edge * edge, 0);
    grid_ = DataGrid(edge, edge);
    make([](WrappedOptions& options) {
      options.window = 16;
      options.trace = true;
    });
    for (std::int64_t i = 0; i < edge; ++i)
      for (std::int64_t j = 0; j < edge; ++j) {
        double& value = values_[static_cast<std::size_t>(i * edge + j)];
        value = static_cast<double>(1 + i * edge + j);
        grid_(i, j) = engine().data(&value, 1, 1, 1, DType::float64);
      }
  }

  Codelet& mean(std::size_t operands) {
    std::vector<Access> access(operands, Access::read);
    access.back() = Access::update;
    return codelet("mean" + std::to_string(operands), access, [](const Arguments& a) {
      double sum = 0;
      for (std::size_t i = 0; i < a.operands.size(); ++i) sum += first(a, i);
      first(a, a.operands.size() - 1) = sum / 3;
    });
  }

  TaskGraph graph() {
    using I = TaskIndices;
    using Operands = std::vector<Operand>;
    const auto priority = [](I i) { return SubmitOptions{.priority = static_cast<int>(-i[0])}; };
    const auto below = [](I i) { return TaskRange{i[0] + 1, edge}; };
    const auto up_to_row = [](I i) { return TaskRange{i[0] + 1, i[1] + 1}; };
    TaskGraph made(edge);
    made.add({&mean(1),
              {},
              [this](I i, Operands& to) {
                to = {{grid_(i[0], i[0]), Access::update}};
              },
              priority});
    made.add({&mean(2),
              {below},
              [this](I i, Operands& to) {
                to = {{grid_(i[0], i[0]), Access::read}, {grid_(i[1], i[0]), Access::update}};
              },
              priority});
    made.add({&mean(3),
              {below, up_to_row},
              [this](I i, Operands& to) {
                to = {{grid_(i[1], i[0]), Access::read},
                      {grid_(i[2], i[0]), Access::read},
                      {grid_(i[1], i[2]), Access::update}};
              },
              priority});
    return made;
  }

  std::int64_t by_hand() {
    Codelet &one = mean(1), &two = mean(2), &three = mean(3);
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < edge; ++k) {
      const SubmitOptions options{.priority = static_cast<int>(-k)};
      const auto submit = [&](Codelet& codelet, std::initializer_list<Operand> operands) {
        engine().submit(codelet, operands, options);
        ++count;
      };
      submit(one, {{grid_(k, k), Access::update}});
      for (std::int64_t i = k + 1; i < edge; ++i)
        submit(two, {{grid_(k, k), Access::read}, {grid_(i, k), Access::update}});
      for (std::int64_t i = k + 1; i < edge; ++i)
        for (std::int64_t j = k + 1; j <= i; ++j)
          submit(three, {{grid_(i, k), Access::read},
                         {grid_(j, k), Access::read},
                         {grid_(i, j), Access::update}});
    }
    return count;
  }

  /// One task a step that updates the grid's first datum.
  TaskClass chain(const Codelet& codelet) {
    return {.codelet = &codelet, .operands = [this](TaskIndices, std::vector<Operand>& to) {
              to.push_back({grid_(0, 0), Access::update});
            }};
  }

  std::vector<double> values_;
  DataGrid grid_{0, 0};
};

TEST_P(TaskGraphTest, ItRunsAsTheSameGraphSubmittedByHand) {
  const std::int64_t count = by_hand();
  wait();
  const std::vector<double> expected = values_;
  const std::string trace = engine().trace_json();
  refill();
  EXPECT_EQ(graph().submit(engine()), count);
  wait();
  EXPECT_EQ(values_, expected);
  if (is_virtual(GetParam())) {
    EXPECT_EQ(engine().trace_json(), trace) << "the same at the same times";
  }
}

TEST_P(TaskGraphTest, TasksAreMadeAsTheWindowMoves) {
  std::atomic<std::int64_t> ended{0};
  std::int64_t made = 0, most = 0;
  Codelet& counting = codelet("count", {Access::update}, [&](const Arguments&) { ++ended; });
  TaskGraph graph(5000);
  TaskClass tasks = chain(counting);
  tasks.options = [&](TaskIndices) {
    most = std::max(most, ++made - ended);
    return SubmitOptions{};
  };
  graph.add(tasks);
  EXPECT_EQ(graph.submit(engine()), 5000);
  wait();
  EXPECT_EQ(ended, 5000);
  EXPECT_LE(most, 32) << "the window holds 16 tasks";
}

TEST_P(TaskGraphTest, ParametersFollowFromTheIndices) {
  Codelet& adding = codelet("add", {Access::update}, [](const Arguments& a) {
    first(a) += static_cast<double>(a.param<std::int64_t>());
  });
  TaskClass tasks = chain(adding);
  tasks.params = [](TaskIndices i, std::vector<std::byte>& to) {
    const auto bytes = std::as_bytes(i.first(1));
    to.assign(bytes.begin(), bytes.end());
  };
  TaskGraph graph(10);
  graph.add(tasks);
  graph.submit(engine());
  wait();
  EXPECT_EQ(values_[0], 1 + 45);
}

TEST_P(TaskGraphTest, AFailureIsThatOfTheTask) {
  Codelet& failing = codelet("fail", {Access::update},
                             [](const Arguments&) { throw std::runtime_error("no such thing"); });
  TaskGraph graph(3);
  graph.add(chain(failing));
  EXPECT_EQ(graph.submit(engine()), 3);
  EXPECT_THROW(wait(), std::runtime_error);
  engine().wait(patience);
}

TEST_P(TaskGraphTest, AStopEndsTheUnrolling) {
  std::int64_t made = 0;
  Codelet& doing = codelet("do", {Access::update}, [](const Arguments&) {});
  TaskClass tasks = chain(doing);
  tasks.options = [&](TaskIndices) {
    ++made;
    return SubmitOptions{};
  };
  TaskGraph graph(std::int64_t{1} << 40);
  graph.add(tasks);
  EXPECT_EQ(graph.submit(engine(), [&] { return made == 7; }), 7);
  wait();
}

TEST_P(TaskGraphTest, AStopIsAskedBeforeEachTaskUntilItSaysSo) {
  Codelet& doing = codelet("do", {Access::update}, [](const Arguments&) {});
  TaskClass tasks = chain(doing);
  tasks.ranges.assign(2, [](TaskIndices) { return TaskRange{0, 4}; });
  TaskGraph graph(2);
  graph.add(tasks);
  graph.add(tasks);
  int asked = 0;
  EXPECT_EQ(graph.submit(engine(), [&] { return ++asked == 6; }), 5);
  EXPECT_EQ(asked, 6);
  wait();
}

TEST_P(TaskGraphTest, ErrorsNameTheTaskAndWhatIsWrong) {
  const auto error_of = [&](const TaskGraph& graph) {
    return failure_of([&] { graph.submit(engine()); });
  };
  TaskGraph outside(7);
  outside.add({&mean(1), {}, [this](TaskIndices i, std::vector<Operand>& to) {
                 to = {{grid_(i[0], 2 * i[0]), Access::update}};
               }});
  EXPECT_EQ(error_of(outside), "task mean1(3): data (3, 6) of a grid of 5 x 5");

  Engine other(EngineOptions{.devices = "cpu:1"});
  double value = 0;
  const Data theirs = other.data(&value, 1, 1, 1, DType::float64);
  TaskGraph foreign(1);
  foreign.add({&mean(1),
               {[](TaskIndices) {
                 return TaskRange{4, 5};
               }},
               [&](TaskIndices, std::vector<Operand>& to) {
                 to = {{theirs, Access::update}};
               }});
  EXPECT_TRUE(error_of(foreign).starts_with("task mean1(0, 4): ")) << error_of(foreign);
  wait();

  EXPECT_EQ(failure_of([] { TaskGraph(-1); }), "a graph of -1 steps: expected 0 or more");
  TaskGraph graph(1);
  EXPECT_EQ(failure_of([&] { graph.add({}); }), "a class of tasks needs a codelet");
  EXPECT_EQ(failure_of([&] { graph.add({.codelet = &mean(1)}); }),
            "class mean1: a function that gives a task's operands is missing");
  TaskClass tasks = chain(mean(1));
  tasks.ranges.resize(2);
  EXPECT_EQ(failure_of([&] { graph.add(tasks); }), "class mean1: the range of index 1 is missing");
}

INSTANTIATE_TEST_SUITE_P(Engines, TaskGraphTest, every_engine(), where_name);

}  // namespace
}  // namespace quadriga
