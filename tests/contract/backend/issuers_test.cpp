// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/backend/issuers_test.cpp: a thread a device queues, another one takes what ended.
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "backend_contract.h"
#include "base/random.h"

namespace quadriga {
namespace {

constexpr std::size_t devices = 4;
constexpr std::size_t streams = 3;  // Of a device.
constexpr std::size_t steps = 250;  // Of a device.
constexpr std::size_t cell_bytes = 512;

struct Place {
  std::size_t device = 0;
  std::size_t step = 0;
};

/// An operation of a program.
struct Step {
  enum class Kind : std::uint8_t { kernel, copy_in, copy_out };
  Kind kind = Kind::kernel;
  std::size_t stream = 0;
  std::vector<Place> needs;  // What its stream is told to wait for before it.
  std::size_t cell = 0;      // Of its device: the step that wrote it, for copies.
  bool fails = false;
};

/// What each device's thread queues. A step needs only steps of smaller numbers: threads that wait
/// until those are queued come to an end.
class Program {
 public:
  Program(std::uint64_t seed, const Machine& machine) {
    Random random(seed);
    for (std::size_t device = 0; device < devices; ++device)
      for (std::size_t i = 0; i < steps; ++i)
        all_[device].push_back(
            draw(random, all_[device], machine.devices[device].space != host_space));
  }
  const Step& at(Place place) const { return all_[place.device][place.step]; }
  /// The number of the operation on its stream.
  std::uint64_t ticket(Place place) const {
    const auto begin = all_[place.device].begin();
    return static_cast<std::uint64_t>(
        std::count_if(begin, begin + static_cast<std::ptrdiff_t>(place.step) + 1,
                      [&](const Step& step) { return step.stream == at(place).stream; }));
  }

 private:
  static Step draw(Random& random, const std::vector<Step>& before, bool copies) {
    Step step;
    const std::size_t number = before.size();
    step.stream = random.below(streams);
    step.cell = number;
    for (std::uint64_t k = random.below(3); k > 0 && number > 0; --k)
      step.needs.push_back({random.below(devices), random.below(number)});
    if (copies) step.kind = static_cast<Step::Kind>(random.below(3));
    if (step.kind == Step::Kind::copy_out) {
      step.cell = number > 0 ? random.below(number) : 0;
      if (number == 0 || before[step.cell].kind != Step::Kind::copy_in)
        step.kind = Step::Kind::kernel;
    }
    step.fails = step.kind == Step::Kind::kernel && random.below(20) == 0;
    return step;
  }

  std::array<std::vector<Step>, devices> all_;
};

class AnyBackendByThreads : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    if (backend_->is_virtual()) GTEST_SKIP() << "one thread calls a backend with a virtual clock";
    start(contract_machine(GetParam().kind, 4e9, static_cast<int>(devices)));
  }
  Kernel adapted(Kernel body) const { return GetParam().adapt ? GetParam().adapt(body) : body; }
};
INSTANTIATE_TEST_SUITE_P(All, AnyBackendByThreads, testing::ValuesIn(all_backends()), case_name);

/// A program on a backend.
class ProgramRun {
 public:
  ProgramRun(Backend& backend, const Program& program, std::function<Kernel(Kernel)> adapted)
      : backend_(backend), program_(program) {
    for (std::size_t device = 0; device < devices; ++device) {
      const auto id = static_cast<DeviceId>(device);
      for (StreamId& stream : streams_[device])
        stream = backend.create_stream(id, StreamKind::compute);
      blocks_[device] = backend.allocate(id, steps * cell_bytes);
      for (std::size_t step = 0; step < steps; ++step)
        variants_[device].push_back(adapted([this, device, step](const Arguments&) {
          compute({device, step});
        }));
      in_[device].resize(steps * cell_bytes);
      out_[device].resize(steps * cell_bytes);
      for (std::size_t i = 0; i < steps * cell_bytes; ++i)
        in_[device][i] = static_cast<std::byte>(i / cell_bytes + 7 * device);
    }
  }

  // By the thread of a device.
  void queue(std::size_t device) {
    for (std::size_t step = 0; step < steps; ++step) {
      const Place place{device, step};
      const StreamId stream = streams_[device][program_.at(place).stream];
      for (const Place& need : program_.at(place).needs) wait(stream, need);
      if (program_.at(place).kind == Step::Kind::copy_out)
        wait(stream, {device, program_.at(place).cell});
      const Event event = queue_on(stream, place);
      EXPECT_EQ(event, (Event{stream, program_.ticket(place)}));
      events_[device][step] = event;
      queued_[device].store(step + 1, std::memory_order_release);
      queued_[device].notify_all();
    }
  }
  // By one thread.
  void take_all() {
    std::array<std::uint64_t, devices * streams> tickets{};
    Nanoseconds before = 0;
    for (std::size_t taken = 0; taken < devices * steps;) {
      std::array<Completion, 5> some;
      const std::size_t count = backend_.next_completion(some, never);
      for (const Completion& done : std::span(some).first(count)) {
        const Place place = place_of(done.event);
        EXPECT_EQ(done.event.ticket, ++tickets[stream_index(done.event.stream)]);
        EXPECT_GE(done.end, before);
        before = done.end;
        EXPECT_EQ(done.error != nullptr, program_.at(place).fails);
        for (const Place& need : program_.at(place).needs)
          EXPECT_TRUE(delivered_[need.device][need.step]) << "delivered before what it waited for";
        delivered_[place.device][place.step] = true;
        ++taken;
      }
    }
  }
  void check() const {
    EXPECT_EQ(early_.load(), 0) << "kernels that ran before what they waited for";
    for (std::size_t device = 0; device < devices; ++device)
      for (std::size_t step = 0; step < steps; ++step) check({device, step});
  }

 private:
  void check(Place place) const {
    const Step& step = program_.at(place);
    const bool is_kernel = step.kind == Step::Kind::kernel;
    EXPECT_EQ(runs_[place.device][place.step].load(), is_kernel ? 1 : 0);
    if (step.kind != Step::Kind::copy_out) return;
    const std::byte* const found = out_[place.device].data() + place.step * cell_bytes;
    const std::byte* const wanted = in_[place.device].data() + step.cell * cell_bytes;
    EXPECT_EQ(std::memcmp(found, wanted, cell_bytes), 0);
  }
  void wait(StreamId stream, Place need) {
    std::atomic<std::size_t>& queued = queued_[need.device];
    for (std::size_t seen = queued; seen <= need.step; seen = queued) queued.wait(seen);
    backend_.wait(stream, events_[need.device][need.step]);
  }
  Event queue_on(StreamId stream, Place place) {
    const Step& step = program_.at(place);
    const SpaceId space = backend_.machine().devices[place.device].space;
    const std::size_t at = place.step * cell_bytes;
    std::byte* const cell =
        step.kind == Step::Kind::kernel ? nullptr : blocks_[place.device] + step.cell * cell_bytes;
    if (step.kind == Step::Kind::copy_in)
      return backend_.copy(stream,
                           {host_space, space, in_[place.device].data() + at, cell, cell_bytes});
    if (step.kind == Step::Kind::copy_out)
      return backend_.copy(stream,
                           {space, host_space, cell, out_[place.device].data() + at, cell_bytes});
    Launch launch;
    launch.kernel = &variants_[place.device][place.step];
    launch.name = "step";
    launch.waits = place.step % 16 == 0;
    return backend_.launch(stream, launch);
  }
  void compute(Place place) {
    for (const Place& need : program_.at(place).needs)
      if (program_.at(need).kind == Step::Kind::kernel && runs_[need.device][need.step] == 0)
        ++early_;
    ++runs_[place.device][place.step];
    if (program_.at(place).fails) throw std::runtime_error("on purpose");
  }
  std::size_t stream_index(StreamId stream) const {
    for (std::size_t device = 0; device < devices; ++device)
      for (std::size_t i = 0; i < streams; ++i)
        if (streams_[device][i] == stream) return device * streams + i;
    ADD_FAILURE() << "no stream of the program";
    return 0;
  }
  Place place_of(Event event) const {
    const std::size_t index = stream_index(event.stream);
    std::uint64_t left = event.ticket;
    for (std::size_t step = 0; step < steps; ++step) {
      const Place place{index / streams, step};
      if (program_.at(place).stream == index % streams && --left == 0) return place;
    }
    ADD_FAILURE() << "no operation of the program";
    return {};
  }

  Backend& backend_;
  const Program& program_;
  std::array<std::array<StreamId, streams>, devices> streams_{};
  std::array<std::byte*, devices> blocks_{};
  std::array<std::deque<Kernel>, devices> variants_;
  std::array<std::vector<std::byte>, devices> in_, out_;
  std::array<std::array<Event, steps>, devices> events_{};
  std::array<std::atomic<std::size_t>, devices> queued_{};
  std::array<std::array<std::atomic<int>, steps>, devices> runs_{};
  std::array<std::array<bool, steps>, devices> delivered_{};  // The taking thread's.
  std::atomic<int> early_{0};
};

TEST_P(AnyBackendByThreads, EachOperationIsDeliveredOnceInOrderAfterWhatItWaitedFor) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    const Program program(seed, backend_->machine());
    ProgramRun run(*backend_, program, [this](Kernel body) { return adapted(std::move(body)); });
    {
      std::vector<std::jthread> issuers;
      for (std::size_t device = 0; device < devices; ++device)
        issuers.emplace_back([&run, device] { run.queue(device); });
      run.take_all();
    }
    run.check();
    start(contract_machine(GetParam().kind, 4e9, static_cast<int>(devices)));
  }
}

// Whatever a variant does while its device's thread queues it: others are queued, run and end.
TEST_P(AnyBackendByThreads, QueueingOnADeviceWaitsForNoOther) {
  std::atomic<bool> begun{false}, open{false};
  const Kernel body = adapted([](const Arguments&) {});
  const Kernel slow = [&](const Arguments& call) {
    begun = true;
    begun.notify_all();
    open.wait(false);
    body(call);
  };
  Launch launch;
  launch.name = "slow";
  launch.kernel = &slow;
  const StreamId first = compute(0);
  const StreamId beside = compute(0);
  const StreamId other = compute(1);
  const Event before = this->launch(beside, [](const Arguments&) {});
  std::jthread issuer([&] { backend_->launch(first, launch); });
  begun.wait(false);
  EXPECT_EQ(collect(1)[0].event, before) << "queued on the same device before";
  for (int i = 0; i < 20; ++i) {
    const Event event = this->launch(other, [](const Arguments&) {});
    EXPECT_EQ(collect(1)[0].event, event);
  }
  open = true;
  open.notify_all();
  EXPECT_EQ(collect(1)[0].event, (Event{first, 1}));
}

// Nothing is under way when the wait begins.
TEST_P(AnyBackendByThreads, WhoWaitsSeesWhatIsQueuedMeanwhile) {
  const StreamId stream = compute(0);
  for (int i = 0; i < 20; ++i) {
    std::jthread issuer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      launch(stream, [](const Arguments&) {});
    });
    Completion done;
    EXPECT_EQ(backend_->next_completion({&done, 1}, backend_->now() + 20'000'000'000), 1u);
    EXPECT_LT(backend_->now() - done.end, 5'000'000'000) << "seen when the wait ended";
  }
}

// As an engine may that finds only later what it needs.
TEST_P(AnyBackendByThreads, StreamsAndMemoryAreMadeWhileOthersQueue) {
  const StreamId first = compute(0);
  const Kernel body = adapted([](const Arguments&) {});
  std::jthread issuer([&] {
    Launch launch;
    launch.kernel = &body;
    for (int i = 0; i < 200; ++i) {
      launch.waits = i % 8 == 0;
      backend_->launch(first, launch);
    }
  });
  std::jthread maker([&] {
    for (int i = 0; i < 100; ++i) {
      compute(1);
      backend_->deallocate(1, backend_->allocate(1, 4096));
    }
  });
  collect(200);
  maker.join();
  const Event last = launch(compute(1), [](const Arguments&) {});
  EXPECT_EQ(collect(1)[0].event, last);
}

// It has its place behind what its stream was queued before.
TEST_P(AnyBackendByThreads, WhatCannotBeQueuedIsDeliveredWithItsErrorInItsOrder) {
  const StreamId stream = compute(0);
  launch_sleep(stream, 20);
  const Event refused = launch_variant(
      stream, [](const Arguments&) { throw Error(Errc::unavailable, "refused"); }, 1);
  launch(stream, [](const Arguments&) {});
  std::uint64_t ticket = 0;
  for (const Completion& done : collect(3)) {
    EXPECT_EQ(done.event.ticket, ++ticket);
    EXPECT_EQ(done.error != nullptr, done.event == refused);
  }
}

}  // namespace
}  // namespace quadriga
