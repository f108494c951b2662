// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/backend/backend_test.cpp: what every backend promises about streams, events and
// completions.
#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "backend_contract.h"
#include "base/random.h"

namespace quadriga {
namespace {

class AnyBackend : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(All, AnyBackend, testing::ValuesIn(all_backends()), case_name);

// Collects what kernels on any thread report.
struct Log {
  void add(int value) {
    const std::lock_guard lock(mutex);
    values.push_back(value);
  }
  std::mutex mutex;
  std::vector<int> values;
};

TEST_P(AnyBackend, StreamRunsItsOperationsInOrder) {
  const StreamId stream = compute(0);
  Log log;
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) {
    const Event event = launch(
        stream, [&log, i](const Arguments&) { log.add(i); }, 0.001);
    EXPECT_EQ(event, (Event{stream, static_cast<std::uint64_t>(i + 1)}));
    expected.push_back(i);
  }
  Nanoseconds before = 0;
  std::uint64_t ticket = 0;
  for (const Completion& done : collect(100)) {
    EXPECT_EQ(done.event, (Event{stream, ++ticket}));
    EXPECT_GE(done.begin, before);
    EXPECT_GE(done.end, done.begin);
    before = done.end;
  }
  EXPECT_EQ(log.values, expected);
}

TEST_P(AnyBackend, StreamsWaitForEventsOfOthers) {
  const StreamId first = compute(0);
  const StreamId second = compute(1);
  Log log;
  const Event slow = launch_sleep(first, 20);
  backend_->wait(second, slow);
  const Event after = launch(second, [&log](const Arguments&) { log.add(2); });
  backend_->wait(first, after);
  backend_->wait(first, Event{});
  launch(first, [&log](const Arguments&) { log.add(3); });
  const std::vector<Completion> done = collect(3);
  EXPECT_EQ(log.values, (std::vector<int>{2, 3}));
  EXPECT_EQ(done[0].event, slow);
  EXPECT_EQ(done[1].event, after);
  EXPECT_GE(done[1].begin, done[0].end);
  EXPECT_GE(done[2].begin, done[1].end);
}

TEST_P(AnyBackend, PassedEventsAreNotWaitedFor) {
  const StreamId first = compute(0);
  const Event event = launch(first, [](const Arguments&) {});
  collect(1);
  const StreamId second = compute(0);
  backend_->wait(second, event);
  launch(second, [](const Arguments&) {});
  EXPECT_EQ(collect(1)[0].event.stream, second);
}

TEST_P(AnyBackend, EventsNotYetMadeAreRefused) {
  const StreamId stream = compute(0);
  const Event event = launch(stream, [](const Arguments&) {});
  EXPECT_THROW(backend_->wait(compute(0), {stream, event.ticket + 1}), Error);
  EXPECT_THROW(backend_->wait(compute(0), {999, 1}), Error);
  EXPECT_THROW(backend_->wait(999, event), Error);
  collect(1);
}

// A random program: a kernel runs once, after the kernels whose events its stream waited for.
TEST_P(AnyBackend, RandomWaitsHoldAndEachOperationIsDeliveredOnce) {
  constexpr int operations = 400;
  Random random(11);
  std::vector<StreamId> streams;
  for (DeviceId i = 0; i < 6; ++i) streams.push_back(compute(static_cast<DeviceId>(i % 2)));
  std::vector<Event> events;
  std::vector<std::vector<int>> needs(operations);
  std::vector<std::atomic<int>> runs(operations);
  std::atomic<int> early{0};
  std::map<StreamId, std::vector<int>> waited;
  for (int i = 0; i < operations; ++i) {
    const StreamId stream = streams[random.below(streams.size())];
    for (std::uint64_t k = random.below(3); k > 0 && i > 0; --k) {
      const auto other = static_cast<int>(random.below(static_cast<std::uint64_t>(i)));
      backend_->wait(stream, events[static_cast<std::size_t>(other)]);
      waited[stream].push_back(other);
    }
    needs[static_cast<std::size_t>(i)] = waited[stream];
    events.push_back(launch(
        stream,
        [&, i](const Arguments&) {
          for (const int need : needs[static_cast<std::size_t>(i)]) {
            if (runs[static_cast<std::size_t>(need)].load() != 1) ++early;
          }
          ++runs[static_cast<std::size_t>(i)];
        },
        0.001 * static_cast<double>(random.below(5))));
  }
  std::map<StreamId, std::uint64_t> tickets;
  Nanoseconds before = 0;
  for (const Completion& done : collect(operations)) {
    EXPECT_EQ(done.event.ticket, ++tickets[done.event.stream]);
    EXPECT_GE(done.end, before);
    before = done.end;
  }
  EXPECT_EQ(early.load(), 0);
  for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
  backend_->wake();
  Completion more;
  EXPECT_EQ(backend_->next_completion({&more, 1}, never), 0u);
}

TEST_P(AnyBackend, FailedKernelIsDeliveredAndTheStreamGoesOn) {
  const StreamId stream = compute(0);
  const Event event =
      launch(stream, [](const Arguments&) { throw std::runtime_error("on purpose"); });
  const StreamId other = compute(1);
  backend_->wait(other, event);
  launch(other, [](const Arguments&) {});
  launch(stream, [](const Arguments&) {});
  for (const Completion& done : collect(3)) {
    EXPECT_EQ(done.error != nullptr, done.event == event);
    if (!done.error) continue;
    EXPECT_THROW(std::rethrow_exception(done.error), std::runtime_error);
  }
}

TEST_P(AnyBackend, AVariantThatWaitsHoldsUpNothingButItsStream) {
  if (backend_->is_virtual()) GTEST_SKIP() << "one thread runs all variants, one by one";
  std::atomic<bool> open{false};
  Log log;
  const auto add = [&log](int value) {
    return [&log, value](const Arguments&) { log.add(value); };
  };
  const StreamId first = compute(0);
  const StreamId second = compute(1);
  const Kernel body = GetParam().adapt ? GetParam().adapt(add(1)) : Kernel(add(1));
  const Event slow = launch_waiting(first, [&](const Arguments& call) {
    open.wait(false);
    body(call);
  });
  launch(first, add(2));
  backend_->wait(second, slow);
  launch(second, add(2));
  const Event beside = launch(compute(1), add(0));
  EXPECT_EQ(collect(1)[0].event, beside);
  EXPECT_EQ(log.values, std::vector{0});
  open = true;
  open.notify_all();
  EXPECT_EQ(collect(3)[0].event, slow);
  EXPECT_EQ(log.values, (std::vector{0, 1, 2, 2}));
}

TEST_P(AnyBackend, AVariantThatWaitsMayFail) {
  const StreamId stream = compute(0);
  const Event event =
      launch_waiting(stream, [](const Arguments&) { throw std::runtime_error("on purpose"); });
  launch(stream, [](const Arguments&) {});
  for (const Completion& done : collect(2)) {
    EXPECT_EQ(done.error != nullptr, done.event == event);
    if (!done.error) continue;
    EXPECT_THROW(std::rethrow_exception(done.error), std::runtime_error);
  }
}

TEST_P(AnyBackend, ArgumentsReachTheVariant) {
  double host[6] = {};
  const View view{host, 2, 3, 2, DType::float64};
  const int parameter = 42;
  int seen = 0;
  const Kernel kernel = [&seen](const Arguments& call) {
    seen = call.param<int>();
    EXPECT_EQ(call.operands.size(), 1u);
    EXPECT_EQ(call.operands[0].cols, 3);
  };
  Launch launch;
  launch.kernel = &kernel;
  launch.arguments.operands = {&view, 1};
  launch.arguments.params = std::as_bytes(std::span(&parameter, 1));
  launch.cost = {"k", 1, 1};
  backend_->launch(compute(0), launch);
  EXPECT_FALSE(collect(1)[0].error);
  EXPECT_EQ(seen, 42);
}

TEST_P(AnyBackend, LaunchWithoutVariantIsRefused) {
  Launch launch;
  launch.cost = {"k", 1, 1};
  EXPECT_THROW(backend_->launch(compute(0), launch), Error);
}

TEST_P(AnyBackend, UnknownDevicesAndStreamsAreRefused) {
  const auto unknown = static_cast<DeviceId>(backend_->machine().devices.size());
  EXPECT_THROW(backend_->create_stream(unknown, StreamKind::compute), Error);
  EXPECT_THROW(backend_->allocate(unknown, 1), Error);
  EXPECT_THROW(launch(999, [](const Arguments&) {}), Error);
}

TEST_P(AnyBackend, WakeReturnsFromTheNextWait) {
  backend_->wake();
  Completion none;
  EXPECT_EQ(backend_->next_completion({&none, 1}, never), 0u);
}

TEST_P(AnyBackend, WakeReturnsFromARunningWait) {
  if (backend_->is_virtual()) return;  // Its waits take no time.
  std::jthread waker([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    backend_->wake();
  });
  Completion none;
  EXPECT_EQ(backend_->next_completion({&none, 1}, never), 0u);
}

TEST_P(AnyBackend, DeadlineEndsTheWaitAndTheWorkGoesOn) {
  const StreamId stream = compute(0);
  std::atomic<bool> passed{false};
  const Event event = launch_until(stream, 60, [&] { return passed.load(); });
  const Nanoseconds deadline = backend_->now() + 5'000'000;
  Completion done;
  EXPECT_EQ(backend_->next_completion({&done, 1}, deadline), 0u);
  EXPECT_GE(backend_->now(), deadline);
  passed = true;
  EXPECT_EQ(collect(1)[0].event, event);
}

TEST_P(AnyBackend, DestroyedWithWorkQueuedItDoesNotHang) {
  if (!GetParam().emulates) GTEST_SKIP() << "what is queued on a GPU can't be dropped";
  const StreamId first = compute(0);
  const StreamId second = compute(1);
  backend_->wait(second, launch_sleep(first, 30));
  for (int i = 0; i < 100; ++i) {
    launch_sleep(first, 3000);
    launch_sleep(second, 3000);
  }
  const auto begin = std::chrono::steady_clock::now();
  backend_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(100));
}

TEST_P(AnyBackend, KernelsOfDifferentStreamsOverlap) {
  // Each runs until the other has begun.
  std::atomic<bool> first{false}, second{false};
  launch_until(compute(0), 150, [&] { return first = true, second.load(); });
  launch_until(compute(0), 150, [&] { return second = true, first.load(); });
  const std::vector<Completion> done = collect(2);
  EXPECT_LT(std::max(done[0].begin, done[1].begin), std::min(done[0].end, done[1].end));
}

}  // namespace
}  // namespace quadriga
