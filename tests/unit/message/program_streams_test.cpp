// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/program_streams_test.cpp: functions that streams of emulated devices call:
// what they hold, what they throw, and who waits for them.
#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/log.h"
#include "unit/message/device_numbers.h"

namespace quadriga::message::testing {
namespace {

constexpr auto text = "emulated:1,memory=1MiB";

/// A member of a thread that lives as long as the thread.
class Ending {
 public:
  explicit Ending(std::shared_ptr<std::promise<void>> ended) : ended_(std::move(ended)) {}
  ~Ending() { ended_->set_value(); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  const std::shared_ptr<std::promise<void>> ended_;
};

// The port's end waits for its threads, of which one drops it.
TEST(ProgramStreams, AFunctionMayBeTheLastToHoldItsDevices) {
  std::shared_ptr<DevicePort> port = emulated(text);
  const std::weak_ptr<DevicePort> seen = port;
  const auto ended = std::make_shared<std::promise<void>>();
  std::promise<void> gate;
  port->streams().call(port->streams().open(0), [port, ended, opened = gate.get_future().share()] {
    static thread_local const Ending ending(ended);
    opened.wait();
  });
  port.reset();
  EXPECT_FALSE(seen.expired());
  gate.set_value();
  EXPECT_EQ(ended->get_future().wait_for(std::chrono::seconds(240)), std::future_status::ready)
      << "the stream's thread goes on";
  EXPECT_TRUE(seen.expired());
}

// Each would wait for the other's thread.
TEST(ProgramStreams, FunctionsOfTwoMayHoldEachOthers) {
  std::shared_ptr<DevicePort> one = emulated(text), other = emulated(text);
  const auto one_ended = std::make_shared<std::promise<void>>();
  const auto other_ended = std::make_shared<std::promise<void>>();
  std::latch alone(3);
  one->streams().call(one->streams().open(0), [other, one_ended, &alone] {
    static thread_local const Ending ending(one_ended);
    alone.arrive_and_wait();
  });
  other->streams().call(other->streams().open(0), [one, other_ended, &alone] {
    static thread_local const Ending ending(other_ended);
    alone.arrive_and_wait();
  });
  one.reset();
  other.reset();
  alone.arrive_and_wait();
  for (const auto& each : {one_ended, other_ended})
    EXPECT_EQ(each->get_future().wait_for(std::chrono::seconds(240)), std::future_status::ready);
}

// What it throws is logged, and what it holds let go, whatever that is.
TEST(ProgramStreams, AFunctionThatThrowsIsLogged) {
  std::string said;
  set_log_sink([&](LogLevel, std::string_view message) { said += message; });
  const auto port = emulated(text);
  const std::uintptr_t stream = port->streams().open(0);
  const auto memory = std::shared_ptr<std::byte>(
      port->memory().allocate(0, 64), [&](std::byte* it) { port->memory().deallocate(0, it); });
  port->streams().call(stream, [memory] { throw std::runtime_error("no such file"); });
  port->streams().call(stream, [memory] { throw 7; });
  port->streams().synchronize(0, stream);
  set_log_sink({});
  EXPECT_NE(said.find("no such file"), std::string::npos);
  EXPECT_NE(said.find("no std::exception"), std::string::npos);
  EXPECT_EQ(memory.use_count(), 1);
}

// Of the processor, so that a busy machine changes nothing.
double seconds_of_this_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST(ProgramStreams, WhoWaitsForAFunctionSleeps) {
  const auto port = emulated(text);
  const std::uintptr_t stream = port->streams().open(0);
  bool done = false;
  port->streams().call(stream, [&done] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    done = true;
  });
  const double before = seconds_of_this_thread();
  port->streams().synchronize(0, stream);
  EXPECT_LT(seconds_of_this_thread() - before, 0.02);
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace quadriga::message::testing
