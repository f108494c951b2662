// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/adoption_test.cpp: data on devices that streams of others still write.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>

#include "device_homes.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

/// What stands for a stream of somebody else: its end is opened by the test.
struct OthersStream {
  std::latch reached{1};
  std::atomic<int> waiting{0};  ///< Streams of the engine.
};

/// A backend of emulated devices on which others have streams, numbered from 1.
class SharedBackend final : public Backend {
 public:
  SharedBackend(std::unique_ptr<Backend> inner, std::vector<OthersStream*> streams)
      : inner_(std::move(inner)), streams_(std::move(streams)) {}

  std::unique_ptr<ForeignEvent> mark(DeviceId, std::uintptr_t stream) const override {
    OthersStream& marked = *streams_.at(stream - 1);
    return marked.reached.try_wait() ? nullptr : std::make_unique<End>(marked);
  }

  std::byte* allocate(DeviceId d, std::size_t bytes) override { return inner_->allocate(d, bytes); }
  void deallocate(DeviceId d, std::byte* m) noexcept override { inner_->deallocate(d, m); }
  StreamId create_stream(DeviceId d, StreamKind k) override { return inner_->create_stream(d, k); }
  Event copy(StreamId s, const Copy& copy) override { return inner_->copy(s, copy); }
  Event launch(StreamId s, const Launch& launch) override { return inner_->launch(s, launch); }
  void wait(StreamId s, Event event) override { inner_->wait(s, event); }
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override {
    return inner_->next_completion(out, deadline);
  }
  void wake() noexcept override { inner_->wake(); }
  bool tell(std::function<void()> ended) override { return inner_->tell(std::move(ended)); }
  Nanoseconds now() const noexcept override { return inner_->now(); }
  bool is_virtual() const noexcept override { return inner_->is_virtual(); }
  DeviceId holder(const void* memory) const override { return inner_->holder(memory); }
  bool pin(std::byte* memory, std::size_t bytes) override { return inner_->pin(memory, bytes); }
  void unpin(std::byte* m, std::size_t bytes) noexcept override { inner_->unpin(m, bytes); }
  const Machine& machine() const noexcept override { return inner_->machine(); }

 private:
  struct End final : ForeignEvent {
    explicit End(OthersStream& stream) : of(stream) {}
    void queue_wait(void*) const override {
      ++of.waiting;
      of.reached.wait();
    }
    bool is_reached() const override { return of.reached.try_wait(); }
    OthersStream& of;
  };
  const std::unique_ptr<Backend> inner_;
  const std::vector<OthersStream*> streams_;
};

class AdoptionTest : public EngineTest {
 protected:
  AdoptionTest() {
    make([this](WrappedOptions& options) {
      options.wrap_backend = [this](std::unique_ptr<Backend> inner) {
        return std::make_unique<SharedBackend>(std::move(inner),
                                               std::vector<OthersStream*>{&first_, &second_});
      };
      options = homes_.around(options);
    });
  }
  /// Eight doubles on a device that somebody else keeps.
  double* take(DeviceId device) {
    auto* const memory = reinterpret_cast<double*>(homes_.take(device, 8 * sizeof(double)));
    std::fill_n(memory, 8, 0.0);
    return memory;
  }
  Data add(DeviceId device, double* memory) {
    return engine().data(device, memory, 8, 1, 8, DType::float64);
  }
  /// Writes as somebody else's stream does, a little later, and ends the stream.
  std::thread writer(OthersStream& stream, double* memory, double value) {
    return std::thread([&stream, memory, value] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      memory[0] = value;
      stream.reached.count_down();
    });
  }

  DeviceHomes homes_;
  OthersStream first_, second_;
};

INSTANTIATE_TEST_SUITE_P(Engine, AdoptionTest,
                         testing::Values(Where::emulated, Where::virtual_clock), where_name);

TEST_P(AdoptionTest, TasksFollowTheStreamThatStillWrites) {
  double* const memory = take(0);
  const Data there = add(0, memory), here = tile();
  Codelet& copy = copying();
  engine().follow(there, 1);
  for (const DeviceId device : {DeviceId{0}, DeviceId{1}}) {
    SubmitOptions options;
    options.device = device;
    engine().submit(copy, {{there, Access::read}, {here, Access::write}}, options);
  }
  EXPECT_FALSE(first_.reached.try_wait());  // nobody waited for it so far
  std::thread writer = this->writer(first_, memory, 7);
  wait();
  writer.join();
  EXPECT_EQ(home(0), 7);
  EXPECT_EQ(first_.waiting, 1);
}

TEST_P(AdoptionTest, OthersGoOnMeanwhile) {
  if (is_virtual(GetParam())) GTEST_SKIP() << "its time stands still while a variant waits";
  double* const memory = take(0);
  const Data there = add(0, memory), here = tile(1), elsewhere = tile();
  Codelet& copy = copying();
  engine().follow(there, 1);
  SubmitOptions second;
  second.device = 1;
  engine().submit(copy, {{here, Access::read}, {elsewhere, Access::write}}, second);
  const Future behind = engine().submit(copy, {{there, Access::read}, {here, Access::write}});
  engine().wait(elsewhere, patience);
  EXPECT_EQ(home(1), 1);
  EXPECT_FALSE(engine().done(behind));
  std::thread writer = this->writer(first_, memory, 7);
  wait();
  writer.join();
  EXPECT_EQ(home(0), 7);
}

TEST_P(AdoptionTest, ATaskFollowsAllOfItsOperandsStreams) {
  double* const one = take(0);
  double* const two = take(1);
  const Data a = add(0, one), b = add(1, two), sum = tile();
  Codelet& add_up = codelet("add", {Access::read, Access::read, Access::write},
                            [](const Arguments& x) { first(x, 2) = first(x, 0) + first(x, 1); });
  engine().follow(a, 1);
  engine().follow(b, 2);
  engine().submit(add_up, {{a, Access::read}, {b, Access::read}, {sum, Access::write}});
  std::thread first = writer(first_, one, 3);
  std::thread second = writer(second_, two, 4);
  wait();
  first.join();
  second.join();
  EXPECT_EQ(home(0), 7);
}

TEST_P(AdoptionTest, AStreamThatHasEndedTakesNoTask) {
  first_.reached.count_down();
  const Data there = add(0, take(0));
  engine().follow(there, 1);
  wait();
  EXPECT_EQ(engine().counters().submitted, 0);
}

TEST_P(AdoptionTest, OnlyDataOnDevicesFollow) {
  const Data here = tile();
  EXPECT_NE(failure_of([&] { engine().follow(here, 1); }).find("on a device"), std::string::npos);
  EXPECT_NE(failure_of([&] { engine().follow({}, 1); }).find("not data"), std::string::npos);
}

}  // namespace
}  // namespace quadriga
