// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/base/log_test.cpp: which messages reach the sink, from many threads and past its
// errors.
#include "base/log.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace quadriga {
namespace {

class Log : public ::testing::Test {
 protected:
  void TearDown() override {
    set_log_sink({});
    set_log_level(LogLevel::warning);
  }
};

TEST_F(Log, DropsWhatIsBelowTheLevel) {
  std::vector<std::string> seen;
  set_log_sink([&](LogLevel level, std::string_view message) {
    seen.push_back(std::string(name(level)) + " " + std::string(message));
  });
  log(LogLevel::info, "quiet");
  log(LogLevel::warning, "heard");
  set_log_level(LogLevel::debug);
  log(LogLevel::debug, "detail");
  set_log_level(LogLevel::off);
  log(LogLevel::error, "lost");
  EXPECT_EQ(seen, (std::vector<std::string>{"warning heard", "debug detail"}));
}

TEST_F(Log, WritesToStandardErrorByDefault) {
  testing::internal::CaptureStderr();
  log(LogLevel::warning, "no GPU");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "quadriga: warning: no GPU\n");
}

TEST_F(Log, SurvivesASinkThatThrowsOrLogs) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    if (++calls < 3) log(LogLevel::error, "inner");
    throw std::runtime_error("sink");
  });
  log(LogLevel::error, "outer");
  EXPECT_EQ(calls, 3);
}

TEST_F(Log, TakesThreadsAndNewSinksAtOnce) {
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        set_log_sink([&](LogLevel, std::string_view) { ++count; });
        log(LogLevel::error, "x");
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 400);
}

TEST_F(Log, ReadsLevels) {
  EXPECT_EQ(parse_log_level("info"), LogLevel::info);
  EXPECT_EQ(parse_log_level("Debug"), LogLevel::debug);
  EXPECT_EQ(parse_log_level("WARNING"), LogLevel::warning);
  EXPECT_THROW(parse_log_level("loud"), Error);
}

}  // namespace
}  // namespace quadriga
