// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/refused_threads_test.cpp: operations whose stream gets no thread end with the
// error, in their order; the stream works on once it gets one.
#include <gtest/gtest.h>
#include <pthread.h>
#include <quadriga/error.h>

#include <atomic>

#include "device/factory.h"

namespace quadriga {
namespace {

/// While it lives no thread can be started: there are no addresses for its stack.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 50);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

class RefusedThreads : public ::testing::Test {
 protected:
  StreamId stream() { return backend_->create_stream(0, StreamKind::compute); }
  Event launch(StreamId stream, const Kernel& kernel) {
    Launch launch;
    launch.kernel = &kernel;
    return backend_->launch(stream, launch);
  }
  Completion next(Nanoseconds seconds = 60) {
    Completion done;
    backend_->next_completion({&done, 1}, backend_->now() + seconds * 1'000'000'000);
    return done;
  }
  static std::string why(const Completion& completion) {
    try {
      if (completion.error) std::rethrow_exception(completion.error);
    } catch (const Error& error) {
      return error.code() == Errc::unavailable ? error.what() : "another code";
    }
    return "none";
  }
  void expect_refused(const Event& event) {
    const Completion done = next();
    EXPECT_EQ(done.event, event);
    EXPECT_NE(why(done).find("can't start a thread"), std::string::npos) << why(done);
    EXPECT_LE(done.begin, done.end);
  }
  void expect_done(const Event& event) {
    const Completion done = next();
    EXPECT_EQ(done.event, event);
    EXPECT_EQ(why(done), "none");
  }

  const Kernel nothing_ = [](const Arguments&) {};
  const std::unique_ptr<Backend> backend_ = make_emulated_backend(Machine::parse("emulated:1"));
};

TEST_F(RefusedThreads, EndWithTheErrorAndTheStreamWorksOn) {
  const StreamId refused = stream();
  {
    const NoThreads none;
    const Event first = launch(refused, nothing_);
    const Event second = launch(refused, nothing_);
    expect_refused(first);
    expect_refused(second);
  }
  const Event after = launch(refused, nothing_);
  expect_done(after);
}

TEST_F(RefusedThreads, EndAfterWhatTheyWaitFor) {
  std::atomic<bool> goes{false};
  const Kernel waiting = [&goes](const Arguments&) { goes.wait(false); };
  const StreamId runs = stream(), refused = stream(), behind = stream(), later = stream();
  const Event awaited = launch(runs, waiting);
  Event first, second, third;
  {
    const NoThreads none;
    backend_->wait(refused, awaited);
    first = launch(refused, nothing_);
    backend_->wait(behind, first);
    second = launch(behind, nothing_);
  }
  // By a thread that finds what was refused before its own.
  backend_->wait(behind, awaited);
  third = launch(behind, nothing_);
  backend_->wait(later, third);
  const Event last = launch(later, nothing_);
  EXPECT_EQ(next(0).event, Event{});
  goes = true;
  goes.notify_all();
  expect_done(awaited);
  expect_refused(first);
  expect_refused(second);
  expect_done(third);
  expect_done(last);
}

}  // namespace
}  // namespace quadriga
