// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/c_tasks_test.cpp: task_c.h on cores and devices, and what it refuses.
#include <quadriga/task_c.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace quadriga {
namespace {

extern "C" {

int scale(const quadriga_arguments* given) {
  double factor = 0;
  if (given->params_bytes != sizeof factor) return 7;
  std::memcpy(&factor, given->params, sizeof factor);
  const quadriga_view& x = given->views[0];
  if (x.type != 'd') return 8;
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.rows; ++i) static_cast<double*>(x.data)[i + j * x.ld] *= factor;
  return 0;
}

int total(const quadriga_arguments* given) {
  const quadriga_view& x = given->views[0];
  for (std::int64_t i = 0; i < x.rows; ++i)
    *static_cast<double*>(given->views[1].data) += static_cast<const double*>(x.data)[i];
  return 0;
}

int zero(const quadriga_arguments* given) {
  *static_cast<double*>(given->views[0].data) = 0;
  return 0;
}

int add(const quadriga_arguments* given) {
  *static_cast<double*>(given->views[0].data) += *static_cast<double*>(given->views[1].data);
  return 0;
}

int count_operands(const quadriga_arguments* given) {
  *static_cast<std::int64_t*>(given->context) = given->operands;
  for (std::int64_t i = 0; i < given->operands; ++i)
    if (given->views[i].type != 'b' || given->views[i].rows != i + 1) return 1;
  return 0;
}

int give_up(const quadriga_arguments*) { return 42; }

int wait_for_it(const quadriga_arguments* given) {
  auto& may_end = *static_cast<std::atomic<bool>*>(given->context);
  may_end.wait(false);
  return 0;
}

struct Nested {
  quadriga_engine* engine;
  quadriga_codelet* scale;
  quadriga_data* data;
};

int submit_two(const quadriga_arguments* given) {
  const auto& nested = *static_cast<const Nested*>(given->context);
  const double factor = 3;
  for (int i = 0; i < 2; ++i)
    if (quadriga_submit(nested.engine, nested.scale, 1, &nested.data, &factor, sizeof factor,
                        nullptr, nullptr) != 0)
      return 1;
  return 0;
}
}

class TasksC : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_EQ(quadriga_open(GetParam(), &engine_), 0); }
  void TearDown() override {
    quadriga_close(engine_);
    for (quadriga_codelet* each : codelets_) quadriga_codelet_free(each);
  }

  quadriga_codelet* codelet(const char* name, std::vector<int> modes, quadriga_variant variant,
                            void* context = nullptr, std::int64_t needs = 0) {
    quadriga_codelet* made = nullptr;
    EXPECT_EQ(quadriga_codelet_create(name, static_cast<std::int64_t>(modes.size()), modes.data(),
                                      variant, nullptr, context, needs, &made),
              0)
        << quadriga_message();
    codelets_.push_back(made);
    return made;
  }
  quadriga_data* data(std::vector<double>& home) {
    quadriga_data* made = nullptr;
    const auto rows = static_cast<std::int64_t>(home.size());
    EXPECT_EQ(quadriga_data_register(engine_, home.data(), rows, 1, rows, 'd', &made), 0);
    return made;
  }
  std::int64_t submit(const quadriga_codelet* codelet, std::vector<quadriga_data*> data,
                      double factor = 2, const quadriga_submit_options* options = nullptr,
                      quadriga_task* task = nullptr) {
    return quadriga_submit(engine_, codelet, static_cast<std::int64_t>(data.size()), data.data(),
                           &factor, sizeof factor, options, task);
  }

  quadriga_engine* engine_ = nullptr;
  std::vector<quadriga_codelet*> codelets_;
};

TEST_P(TasksC, AreOrderedByTheirDataAndReadWhatTheHostWrites) {
  const quadriga_codelet* const scaled = codelet("scale", {QUADRIGA_UPDATE}, scale);
  std::vector<double> x(5, 1.0), y(7, 1.0);
  quadriga_data* const a = data(x);
  quadriga_data* const b = data(y);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(submit(scaled, {a}), 0);
    ASSERT_EQ(submit(scaled, {b}, 3), 0);
  }
  ASSERT_EQ(quadriga_data_wait(a, -1), 0);
  EXPECT_EQ(x, std::vector<double>(5, 1024));
  ASSERT_EQ(quadriga_wait_all(engine_, -1), 0);
  EXPECT_EQ(y, std::vector<double>(7, 59049));
  x.assign(5, 5);
  ASSERT_EQ(submit(scaled, {a}), 0);
  quadriga_access* access = nullptr;
  ASSERT_EQ(quadriga_on_host(a, QUADRIGA_UPDATE, -1, &access), 0);
  EXPECT_EQ(x, std::vector<double>(5, 10));
  x[0] = 1;
  quadriga_release(access);
  ASSERT_EQ(submit(scaled, {a}), 0);
  EXPECT_EQ(quadriga_data_remove(a), 0);
  EXPECT_EQ(x, (std::vector<double>{2, 20, 20, 20, 20}));
  EXPECT_EQ(quadriga_data_remove(b), 0);
}

TEST_P(TasksC, Reduce) {
  quadriga_codelet* const sum = codelet("sum", {QUADRIGA_READ, QUADRIGA_REDUCE}, total);
  ASSERT_EQ(quadriga_codelet_reduce(sum, codelet("zero", {QUADRIGA_WRITE}, zero),
                                    codelet("add", {QUADRIGA_UPDATE, QUADRIGA_READ}, add)),
            0);
  std::vector<std::vector<double>> parts(20, std::vector<double>(100));
  std::vector<double> result(1, 5);
  quadriga_data* const into = data(result);
  std::vector<quadriga_data*> all;
  double expected = 5;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::iota(parts[i].begin(), parts[i].end(), static_cast<double>(i));
    expected += std::accumulate(parts[i].begin(), parts[i].end(), 0.0);
    all.push_back(data(parts[i]));
    ASSERT_EQ(submit(sum, {all.back(), into}), 0);
  }
  ASSERT_EQ(quadriga_wait_all(engine_, -1), 0) << quadriga_message();
  EXPECT_EQ(result[0], expected);
  all.push_back(into);
  for (quadriga_data* each : all) EXPECT_EQ(quadriga_data_remove(each), 0);
}

TEST_P(TasksC, OfManyOperandsSeeEachOfThem) {
  std::int64_t seen = 0;
  std::vector<int> modes(11, QUADRIGA_WRITE);
  const quadriga_codelet* const made = codelet("count", modes, count_operands, &seen);
  std::vector<quadriga_data*> all(11);
  for (std::size_t i = 0; i < all.size(); ++i)
    ASSERT_EQ(quadriga_data_temporary(engine_, static_cast<std::int64_t>(i) + 1, 1, 'B', &all[i]),
              0);
  ASSERT_EQ(quadriga_submit(engine_, made, 11, all.data(), nullptr, 0, nullptr, nullptr), 0);
  ASSERT_EQ(quadriga_wait_all(engine_, -1), 0) << quadriga_message();
  EXPECT_EQ(seen, 11);
  for (quadriga_data* each : all) EXPECT_EQ(quadriga_data_remove(each), 0);
}

TEST_P(TasksC, ThatFailSayWhich) {
  std::vector<double> x(3, 1);
  quadriga_data* const a = data(x);
  quadriga_task task;
  ASSERT_EQ(submit(codelet("give up", {QUADRIGA_READ}, give_up), {a}, 0, nullptr, &task), 0);
  EXPECT_EQ(quadriga_task_wait(engine_, &task, -1), QUADRIGA_TASK_FAILED);
  const std::string what = quadriga_message();
  EXPECT_NE(what.find("give up"), std::string::npos) << what;
  EXPECT_NE(what.find("returned 42"), std::string::npos) << what;
  EXPECT_EQ(quadriga_wait_all(engine_, -1), QUADRIGA_TASK_FAILED);
  EXPECT_EQ(quadriga_wait_all(engine_, -1), 0);
  EXPECT_EQ(quadriga_data_remove(a), 0);
}

TEST_P(TasksC, WaitForEachOtherBySequencesAndByTasks) {
  std::atomic<bool> may_end{false};
  const quadriga_codelet* const held =
      codelet("held", {}, wait_for_it, &may_end, QUADRIGA_HOST_ONLY + QUADRIGA_BLOCKS);
  const quadriga_codelet* const scaled = codelet("scale", {QUADRIGA_UPDATE}, scale);
  std::vector<double> x(3, 1);
  quadriga_data* const a = data(x);
  quadriga_sequence* sequence = nullptr;
  ASSERT_EQ(quadriga_sequence_create(engine_, &sequence), 0);
  quadriga_submit_options options{};
  options.sequence = sequence;
  std::array<quadriga_task, 2> tasks;
  ASSERT_EQ(submit(held, {}, 0, &options, &tasks[0]), 0);
  ASSERT_EQ(submit(scaled, {a}, 2, &options, &tasks[1]), 0);
  quadriga_submit_options late{};
  late.afters = 2;
  late.after = tasks.data();
  late.priority = 3;
  late.device = 1;
  quadriga_task last;
  ASSERT_EQ(submit(scaled, {a}, 5, &late, &last), 0);
  EXPECT_EQ(quadriga_task_wait(engine_, &last, 0.01), QUADRIGA_DEADLINE);
  int done = 1;
  ASSERT_EQ(quadriga_task_done(engine_, &last, &done), 0);
  EXPECT_EQ(done, 0);
  may_end = true;
  may_end.notify_all();
  ASSERT_EQ(quadriga_sequence_remove(sequence), 0);
  ASSERT_EQ(quadriga_wait_all(engine_, -1), 0);
  ASSERT_EQ(quadriga_task_done(engine_, &last, &done), 0);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(x[0], 10);
  EXPECT_EQ(quadriga_data_remove(a), 0);
}

TEST_P(TasksC, SubmitTasks) {
  std::vector<double> x(3, 1);
  quadriga_data* const a = data(x);
  Nested nested{engine_, codelet("scale", {QUADRIGA_UPDATE}, scale), a};
  ASSERT_EQ(submit(codelet("outer", {QUADRIGA_UPDATE}, submit_two, &nested,
                           QUADRIGA_HOST_ONLY + QUADRIGA_SUBMITS),
                   {a}),
            0);
  ASSERT_EQ(submit(nested.scale, {a}), 0);
  ASSERT_EQ(quadriga_wait_all(engine_, -1), 0) << quadriga_message();
  EXPECT_EQ(x[0], 18);
  EXPECT_EQ(quadriga_data_remove(a), 0);
}

TEST_P(TasksC, RefuseWhatIsWrong) {
  std::vector<double> x(4, 1);
  quadriga_data* const a = data(x);
  const quadriga_codelet* const scaled = codelet("scale", {QUADRIGA_UPDATE}, scale);
  const auto refused = [](std::int64_t info, std::int64_t expected, const char* words) {
    EXPECT_EQ(info, expected) << words;
    EXPECT_NE(std::string(quadriga_message()).find(words), std::string::npos) << quadriga_message();
  };
  refused(submit(scaled, {a, a}), -3, "2 operands; codelet 'scale' has 1");
  refused(submit(scaled, {nullptr}), -4, "the data is NULL");
  refused(submit(nullptr, {a}), -2, "the codelet is NULL");
  refused(quadriga_submit(nullptr, scaled, 1, &a, nullptr, 0, nullptr, nullptr), -1, "engine");
  refused(quadriga_submit(engine_, scaled, 1, &a, nullptr, 8, nullptr, nullptr), -6, "8 bytes");
  quadriga_submit_options options{};
  options.device = 9;
  refused(submit(scaled, {a}, 2, &options), -7, "`device` is 9; expected 1 to");
  options = {};
  options.afters = 1;
  refused(submit(scaled, {a}, 2, &options), -7, "as many tasks");
  options = {};
  options.priority = std::int64_t{1} << 40;
  refused(submit(scaled, {a}, 2, &options), -7, "`priority`");

  quadriga_engine* other = nullptr;
  ASSERT_EQ(quadriga_open("cpu", &other), 0);
  refused(quadriga_submit(other, scaled, 1, &a, nullptr, 0, nullptr, nullptr), -4,
          "another engine");
  quadriga_close(other);

  quadriga_codelet* made = nullptr;
  const int mode = 5;
  refused(quadriga_codelet_create("", 0, nullptr, zero, nullptr, nullptr, 0, &made), -1, "name");
  refused(quadriga_codelet_create("x", 1, &mode, zero, nullptr, nullptr, 0, &made), -3, "mode 5");
  refused(quadriga_codelet_create("x", 0, nullptr, nullptr, nullptr, nullptr, 0, &made), -4,
          "both variants");
  refused(quadriga_codelet_create("x", 0, nullptr, zero, nullptr, nullptr, QUADRIGA_BLOCKS, &made),
          -7, "QUADRIGA_HOST_ONLY");
  refused(quadriga_codelet_create("x", 0, nullptr, zero, nullptr, nullptr, 8, &made), -7, "needs");
  EXPECT_EQ(made, nullptr);
  refused(quadriga_codelet_reduce(codelets_[0], scaled, scaled), -2, "QUADRIGA_WRITE");

  quadriga_data* none = nullptr;
  refused(quadriga_data_register(engine_, nullptr, 1, 1, 1, 'd', &none), -2, "the memory is NULL");
  refused(quadriga_data_register(engine_, x.data(), 1, 1, 1, 'q', &none), -6, "type is 'q'");
  refused(quadriga_data_register(engine_, x.data(), 1, 1, 1, 0, &none), -6,
          "type is '\\0'; expected one of s, d");
  refused(quadriga_data_register(engine_, x.data(), -8, 1, 8, 'd', &none), -3, "-8 rows");
  refused(quadriga_data_register(engine_, x.data(), 1, -8, 8, 'd', &none), -4, "-8 columns");
  refused(quadriga_data_register(engine_, x.data(), 4, 1, 2, 'd', &none), -5, "dimension 2");
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t many = std::int64_t{1} << 60;
  const char* const words = "more bytes than any memory";
  refused(quadriga_data_register(engine_, x.data(), 26, many, 32, 'd', &none), -4, words);
  refused(quadriga_data_register(engine_, x.data(), 1, 8, 2 * many, 'd', &none), -5, words);
  refused(quadriga_data_register(engine_, x.data(), 2 * many, 1, 2 * many, 'd', &none), -3, words);
  refused(quadriga_data_register(engine_, x.data(), most, most, most, 'd', &none), -3, words);
  auto* const end = reinterpret_cast<void*>(~std::uintptr_t{0} - 7);
  refused(quadriga_data_register(engine_, end, 2, 1, 2, 'd', &none), -4, words);
  refused(quadriga_data_temporary(engine_, std::int64_t{1} << 40, 1 << 24, 'd', &none), -3, words);
  refused(quadriga_data_temporary(engine_, 4 * many, 4 * many, 'b', &none), -2, words);
  refused(quadriga_data_temporary(engine_, 1, -1, 'd', &none), -3, "-1 columns");
  EXPECT_EQ(none, nullptr);
  quadriga_access* access = nullptr;
  refused(quadriga_on_host(a, QUADRIGA_COMMUTE, -1, &access), -2, "the host reads");
  refused(quadriga_on_host(a, QUADRIGA_REDUCE, -1, &access), -2, "the host reads");
  quadriga_task task{};
  refused(quadriga_task_wait(engine_, &task, -1), -2, "the task is NULL");
  EXPECT_EQ(quadriga_data_remove(a), 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, TasksC, ::testing::Values("cpu:2", "emulated:2,memory=1MiB"));

}  // namespace
}  // namespace quadriga
