// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/backend/hardware_queues_test.cpp: copy engines and hardware queues of devices that
// are emulated, by both clocks.
#include <atomic>
#include <deque>
#include <map>
#include <utility>

#include "backend_contract.h"

namespace quadriga {
namespace {

class EmulatedQueues : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!GetParam().emulates) GTEST_SKIP() << "its devices have the engines and queues they have";
  }

  void start_with(int copy_engines, int hardware_queues, double bytes_per_second = 4e9) {
    Machine machine = contract_machine(GetParam().kind, bytes_per_second);
    for (Device& device : machine.devices) {
      device.copy_engines = copy_engines;
      device.hardware_queues = hardware_queues;
    }
    done_.clear();
    start(std::move(machine));
  }

  // Each of memory of its own: copies of different streams aren't ordered.
  Event copy_in(StreamId stream) {
    return backend_->copy(stream, {host_space, 1, host(), memory(), bytes});
  }
  Event copy_out(StreamId stream) {
    return backend_->copy(stream, {1, host_space, memory(), host(), bytes});
  }

  Completion of(Event event) {
    while (!done_.contains({event.stream, event.ticket})) {
      Completion next;
      if (backend_->next_completion({&next, 1}, never) == 1)
        done_[{next.event.stream, next.event.ticket}] = next;
    }
    return done_[{event.stream, event.ticket}];
  }

 private:
  static constexpr std::size_t bytes = std::size_t{64} << 10;

  std::byte* memory() { return backend_->allocate(0, bytes); }
  std::byte* host() { return hosts_.emplace_back(bytes).data(); }

  std::deque<std::vector<std::byte>> hosts_;
  std::map<std::pair<StreamId, std::uint64_t>, Completion> done_;
};

INSTANTIATE_TEST_SUITE_P(All, EmulatedQueues, testing::ValuesIn(memory_backends()), case_name);

TEST_P(EmulatedQueues, OneCopyEngineCarriesOneCopyAtATime) {
  start_with(1, 0);
  std::vector<Event> events;
  for (int i = 0; i < 3; ++i) {
    events.push_back(copy_in(backend_->create_stream(0, StreamKind::copy_in)));
    events.push_back(copy_out(backend_->create_stream(0, StreamKind::copy_out)));
  }
  std::vector<Completion> done;
  for (const Event event : events) done.push_back(of(event));
  std::ranges::sort(done, {}, &Completion::begin);
  for (std::size_t i = 1; i < done.size(); ++i) EXPECT_GE(done[i].begin, done[i - 1].end) << i;
}

// 64 KiB take 65 ms, and ten times as long if others keep the machine busy: the second copy begins
// before the first ends.
TEST_P(EmulatedQueues, TwoCopyEnginesCarryBothDirectionsAtOnce) {
  bool are_at_once = false;
  for (double rate = 1e6; !are_at_once && rate > 500; rate /= 10) {
    start_with(2, 0, rate);
    const Event in = copy_in(backend_->create_stream(0, StreamKind::copy_in));
    const Event out = copy_out(backend_->create_stream(0, StreamKind::copy_out));
    are_at_once = of(out).begin < of(in).end;
  }
  EXPECT_TRUE(are_at_once);
}

// The copy out waits for the kernel, and the copy in, of another stream, stands behind it.
TEST_P(EmulatedQueues, ACopyWaitsBehindThoseInItsHardwareQueue) {
  start_with(2, 1);
  const StreamId first = backend_->create_stream(0, StreamKind::compute);
  const StreamId second = backend_->create_stream(0, StreamKind::copy_in);
  const Event kernel = launch_sleep(first, 20);
  const Event out = copy_out(first);
  const Event in = copy_in(second);
  EXPECT_GE(of(in).begin, of(kernel).end);
  EXPECT_GE(of(in).begin, of(out).begin);
}

TEST_P(EmulatedQueues, AKernelWaitsBehindThoseInItsHardwareQueue) {
  start_with(2, 1);
  const StreamId other = backend_->create_stream(1, StreamKind::compute);
  const StreamId first = backend_->create_stream(0, StreamKind::compute);
  const StreamId second = backend_->create_stream(0, StreamKind::panel);
  const Event far = launch_sleep(other, 20);
  backend_->wait(first, far);
  const Event behind = launch_sleep(first, 1);
  const Event last = launch_sleep(second, 1);
  EXPECT_GE(of(last).begin, of(far).end);
  EXPECT_GE(of(last).begin, of(behind).begin);
}

TEST_P(EmulatedQueues, StreamsOfDifferentHardwareQueuesDoNotWait) {
  start_with(2, 2);
  const StreamId first = backend_->create_stream(0, StreamKind::compute);
  const StreamId second = backend_->create_stream(0, StreamKind::copy_in);
  const StreamId third = backend_->create_stream(0, StreamKind::copy_in);
  std::atomic<bool> is_copied{false};
  const Event kernel = launch_until(first, 20, [&] { return is_copied.load(); });
  const Event out = copy_out(first);
  const Event in = copy_in(second);
  const Event behind = copy_in(third);
  const Nanoseconds copied = of(in).end;
  is_copied.store(true);
  EXPECT_LE(copied, of(kernel).end);
  EXPECT_GE(of(behind).begin, of(kernel).end);
  EXPECT_GE(of(behind).begin, of(out).begin);
}

}  // namespace
}  // namespace quadriga
