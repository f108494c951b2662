// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/sequence_test.cpp: order without content.
#include <quadriga/engine.h>

#include <atomic>
#include <vector>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class SequenceTest : public EngineTest {
 protected:
  /// Notes its number, after a while that is longest for those that come first.
  Codelet& noting(std::vector<Access> signature) {
    return codelet("note", std::move(signature), [this](const Arguments& arguments) {
      EXPECT_EQ(running_.fetch_add(1), 0);
      const int number = arguments.param<int>();
      if (!is_virtual(GetParam()))
        std::this_thread::sleep_for(std::chrono::microseconds(number < 5 ? 2000 : 20));
      order_.push_back(number);
      running_.fetch_sub(1);
      if (number % 7 == 3) throw std::runtime_error("stumbled");
    });
  }
  static std::vector<int> first_numbers(int count) {
    std::vector<int> numbers(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = i;
    return numbers;
  }

  std::atomic<int> running_ = 0;
  std::vector<int> order_;  ///< Each task's to write: they run one after the other.
};

INSTANTIATE_TEST_SUITE_P(Engine, SequenceTest, every_engine(), where_name);

TEST_P(SequenceTest, IsKeptByTasksThatShareNoDataWhateverBecomesOfThem) {
  constexpr int count = 40;
  Codelet& note = noting({Access::update});
  const Sequence sequence = engine().sequence();
  for (int i = 0; i < count; ++i)
    engine().submit(note, {{tile(), Access::update}}, i, {.priority = i, .sequence = sequence});
  EXPECT_THROW(wait(), std::runtime_error);
  EXPECT_EQ(order_, first_numbers(count));
  engine().remove(sequence);
}

TEST_P(SequenceTest, HoldsUpNoOthers) {
  const Sequence sequence = engine().sequence();
  Codelet& more = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  const Data held = tile(), free = tile();
  // Elsewhere, or it might be queued behind the gate on the same stream.
  const bool on_host = GetParam() == Where::host;
  const DeviceId here = on_host ? no_device : 0, there = on_host ? no_device : 1;
  engine().submit(gate({Access::update}), {{held, Access::update}},
                  {.device = here, .sequence = sequence});
  engine().submit(more, {{held, Access::update}}, {.device = here, .sequence = sequence});
  engine().submit(more, {{free, Access::update}}, {.device = there});
  engine().wait(free, patience);
  EXPECT_EQ(home(1), 1);
  open();
  wait();
  EXPECT_EQ(home(0), 1);
}

TEST_P(SequenceTest, DataOrdersTasksOfTwoSequences) {
  const Sequence a = engine().sequence(), b = engine().sequence();
  Codelet& doubled =
      codelet(Access::update, [](const Arguments& x) { first(x) = 2 * first(x) + 1; });
  const Data x = tile();
  for (int i = 0; i < 20; ++i)
    engine().submit(doubled, {{x, Access::update}}, {.sequence = i % 2 ? a : b});
  wait();
  EXPECT_EQ(home(0), (1 << 20) - 1);
}

TEST_P(SequenceTest, IsRemovedOnceItsTasksHaveEnded) {
  const Sequence sequence = engine().sequence();
  Codelet& note = noting({});
  for (int i = 0; i < 3; ++i) engine().submit(note, {}, i, {.sequence = sequence});
  engine().remove(sequence);
  EXPECT_EQ(order_, first_numbers(3));
  EXPECT_NE(
      failure_of([&] { engine().submit(note, {}, 0, {.sequence = sequence}); }).find("removed"),
      std::string::npos);
}

}  // namespace
}  // namespace quadriga
