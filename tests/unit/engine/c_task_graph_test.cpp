// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/c_task_graph_test.cpp: task_graph_c.h makes the tasks that loops would.
// what is wrong with which of them.
#include <quadriga/task_graph_c.h>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace quadriga {
namespace {

constexpr std::int64_t steps = 5, width = 4;

/// What the functions of a graph work on.
struct Program {
  std::array<quadriga_data*, width> data = {};
  std::int64_t asked = 0;          ///< Tasks.
  std::int64_t stop_after = 1000;  ///< So many were asked for.
  std::int64_t fails_at = -1;      ///< The step whose range, or task, isn't given.
  std::int64_t missing_at = -1;    ///< The step whose tasks lack an operand.
  std::int64_t priority = 0;
};

extern "C" {

/// y = 3y + x + params.
int combine(const quadriga_arguments* given) {
  double more = 0;
  std::memcpy(&more, given->params, sizeof more);
  auto& y = *static_cast<double*>(given->views[1].data);
  y = 3 * y + *static_cast<const double*>(given->views[0].data) + more;
  return 0;
}

int break_off(const quadriga_arguments*) { return 9; }

int others(const std::int64_t* indices, std::int64_t known, void* context, std::int64_t* begin,
           std::int64_t* end) {
  const Program& program = *static_cast<const Program*>(context);
  if (known != 1 || indices[0] == program.fails_at) return 5;
  *begin = 1;
  *end = width;
  return 0;
}

int combine_at(const std::int64_t* indices, std::int64_t count, void* context, quadriga_data** data,
               void* params, quadriga_submit_options* options) {
  Program& program = *static_cast<Program*>(context);
  if (count != 2 || indices[0] == program.fails_at) return 6;
  const double more = static_cast<double>(indices[0]);
  std::memcpy(params, &more, sizeof more);
  data[0] = program.data[static_cast<std::size_t>(indices[1] - 1)];
  if (indices[0] != program.missing_at)
    data[1] = program.data[static_cast<std::size_t>(indices[1])];
  options->priority = program.priority;
  ++program.asked;
  return 0;
}

int stop_if_enough(void* context) {
  const Program& program = *static_cast<const Program*>(context);
  return program.asked >= program.stop_after;
}

int first_at(const std::int64_t*, std::int64_t, void* context, quadriga_data** data, void*,
             quadriga_submit_options*) {
  data[0] = static_cast<Program*>(context)->data[0];
  return 0;
}
}

class TaskGraphC : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_EQ(quadriga_open(GetParam(), &engine_), 0) << quadriga_message();
    const int modes[] = {QUADRIGA_READ, QUADRIGA_UPDATE};
    ASSERT_EQ(quadriga_codelet_create("combine", 2, modes, combine, nullptr, nullptr, 0, &combine_),
              0);
    for (std::size_t i = 0; i < width; ++i)
      ASSERT_EQ(quadriga_data_register(engine_, &values_[i], 1, 1, 1, 'd', &program_.data[i]), 0);
    ASSERT_EQ(quadriga_task_graph_create(steps, &graph_), 0);
  }
  void TearDown() override {
    quadriga_task_graph_free(graph_);
    for (quadriga_data* each : program_.data) EXPECT_EQ(quadriga_data_remove(each), 0);
    quadriga_close(engine_);
    quadriga_codelet_free(combine_);
  }
  std::int64_t add() {
    return quadriga_task_graph_add(graph_, combine_, 1, others, combine_at, sizeof(double),
                                   &program_);
  }
  /// The first so many tasks by loops.
  std::array<double, width> expected(std::int64_t tasks) {
    std::array<double, width> x = {1, 2, 3, 4};
    for (std::int64_t k = 0; k < steps; ++k)
      for (std::size_t i = 1; i < width; ++i)
        if (tasks-- > 0) x[i] = 3 * x[i] + x[i - 1] + static_cast<double>(k);
    return x;
  }
  void refused(std::int64_t info, std::int64_t number, const std::string& words) {
    EXPECT_EQ(info, number) << words;
    EXPECT_NE(std::string(quadriga_message()).find(words), std::string::npos) << quadriga_message();
  }

  quadriga_engine* engine_ = nullptr;
  quadriga_codelet* combine_ = nullptr;
  quadriga_task_graph* graph_ = nullptr;
  std::array<double, width> values_ = {1, 2, 3, 4};
  Program program_;
};

INSTANTIATE_TEST_SUITE_P(Devices, TaskGraphC, testing::Values("cpu:2", "emulated:2"),
                         [](const auto& given) { return given.index == 0 ? "Host" : "Emulated"; });

TEST_P(TaskGraphC, GivesWhatLoopsGive) {
  program_.priority = 3;
  ASSERT_EQ(add(), 0) << quadriga_message();
  std::int64_t submitted = -1;
  ASSERT_EQ(quadriga_task_graph_submit(engine_, graph_, nullptr, nullptr, &submitted), 0)
      << quadriga_message();
  ASSERT_EQ(quadriga_wait_all(engine_, -1), 0) << quadriga_message();
  EXPECT_EQ(submitted, steps * (width - 1));
  EXPECT_EQ(values_, expected(submitted));
}

TEST_P(TaskGraphC, StopsWhenItIsTold) {
  program_.stop_after = 7;
  ASSERT_EQ(add(), 0);
  std::int64_t submitted = -1;
  ASSERT_EQ(quadriga_task_graph_submit(engine_, graph_, stop_if_enough, &program_, &submitted), 0);
  ASSERT_EQ(quadriga_wait_all(engine_, -1), 0);
  EXPECT_EQ(submitted, 7);
  EXPECT_EQ(values_, expected(7));
}

TEST_P(TaskGraphC, ErrorsNameTheTask) {
  ASSERT_EQ(add(), 0);
  std::int64_t submitted = -1;
  program_.missing_at = 2;
  refused(quadriga_task_graph_submit(engine_, graph_, nullptr, nullptr, &submitted),
          QUADRIGA_INVALID, "task combine(2, 1): data[1] was not set");
  EXPECT_EQ(submitted, 0);
  ASSERT_EQ(quadriga_wait_all(engine_, -1), 0);
  EXPECT_EQ(values_, expected(2 * (width - 1)));
  program_ = {.data = program_.data, .fails_at = 0};
  refused(quadriga_task_graph_submit(engine_, graph_, nullptr, nullptr, nullptr), QUADRIGA_INVALID,
          "task combine(0): its function `range` returned 5");
  program_ = {.data = program_.data, .priority = std::int64_t{1} << 40};
  refused(quadriga_task_graph_submit(engine_, graph_, nullptr, nullptr, nullptr), QUADRIGA_INVALID,
          "task combine(0, 1): `priority` is 1099511627776");
}

TEST_P(TaskGraphC, FailuresAreThoseOfTasks) {
  const int update = QUADRIGA_UPDATE;
  quadriga_codelet* failing = nullptr;
  ASSERT_EQ(
      quadriga_codelet_create("break_off", 1, &update, break_off, nullptr, nullptr, 0, &failing),
      0);
  ASSERT_EQ(quadriga_task_graph_add(graph_, failing, 0, nullptr, first_at, 0, &program_), 0);
  ASSERT_EQ(quadriga_task_graph_submit(engine_, graph_, nullptr, nullptr, nullptr), 0);
  refused(quadriga_wait_all(engine_, -1), QUADRIGA_TASK_FAILED, "returned 9");
  quadriga_codelet_free(failing);
}

TEST_P(TaskGraphC, CancelledTasksLeaveAnEngineThatWorks) {
  ASSERT_EQ(add(), 0);
  ASSERT_EQ(quadriga_task_graph_submit(engine_, graph_, nullptr, nullptr, nullptr), 0);
  ASSERT_EQ(quadriga_cancel(engine_), 0);
  values_ = {1, 2, 3, 4};
  // What was cancelled has lost its content; other data of the same engine work.
  double x = 1, y = 2;
  std::array<quadriga_data*, width> lost = program_.data;
  ASSERT_EQ(quadriga_data_register(engine_, &x, 1, 1, 1, 'd', &program_.data[0]), 0);
  ASSERT_EQ(quadriga_data_register(engine_, &y, 1, 1, 1, 'd', &program_.data[1]), 0);
  const double more = 5;
  ASSERT_EQ(quadriga_submit(engine_, combine_, 2, program_.data.data(), &more, sizeof more, nullptr,
                            nullptr),
            0);
  ASSERT_EQ(quadriga_wait_all(engine_, -1), 0) << quadriga_message();
  EXPECT_EQ(y, 12);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(quadriga_data_remove(program_.data[static_cast<std::size_t>(i)]), 0);
  program_.data = lost;
}

TEST_P(TaskGraphC, RefusesWhatIsWrong) {
  quadriga_task_graph* none = nullptr;
  refused(quadriga_task_graph_create(-1, &none), -1, "-1 steps");
  refused(quadriga_task_graph_create(1, nullptr), -2, "NULL");
  const auto add = [&](quadriga_task_graph* graph, const quadriga_codelet* codelet,
                       std::int64_t further, quadriga_index_range range, quadriga_task_at task_at,
                       std::int64_t bytes) {
    return quadriga_task_graph_add(graph, codelet, further, range, task_at, bytes, &program_);
  };
  refused(add(nullptr, combine_, 1, others, combine_at, 8), -1, "the graph is NULL");
  refused(add(graph_, nullptr, 1, others, combine_at, 8), -2, "the codelet is NULL");
  refused(add(graph_, combine_, -1, others, combine_at, 8), -3, "-1 further indices");
  refused(add(graph_, combine_, 1, nullptr, combine_at, 8), -4, "`range` is NULL");
  refused(add(graph_, combine_, 1, others, nullptr, 8), -5, "`task_at` is NULL");
  refused(add(graph_, combine_, 1, others, combine_at, -8), -6, "-8 bytes");
  refused(quadriga_task_graph_submit(nullptr, graph_, nullptr, nullptr, nullptr), -1, "engine");
  refused(quadriga_task_graph_submit(engine_, nullptr, nullptr, nullptr, nullptr), -2, "graph");
  quadriga_task_graph_free(nullptr);

  quadriga_engine* other = nullptr;
  ASSERT_EQ(quadriga_open("cpu:1", &other), 0);
  ASSERT_EQ(this->add(), 0);
  refused(quadriga_task_graph_submit(other, graph_, nullptr, nullptr, nullptr), QUADRIGA_INVALID,
          "task combine(0, 1): data[0] is of another engine");
  quadriga_close(other);
}

}  // namespace
}  // namespace quadriga
