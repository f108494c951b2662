// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/run_log_test.cpp: when a run's schedule is logged, and where to.
#include "engine/run_log.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <unistd.h>

#include <filesystem>

namespace quadriga {
namespace {

std::string file(const std::string& name) {
  return ::testing::TempDir() + "run-log-" + std::to_string(::getpid()) + "-" + name;
}

TEST(RunLogTest, WithoutAFileNothingIsLogged) {
  RunLog log;
  EXPECT_EQ(log.open(""), nullptr);
}

TEST(RunLogTest, OneAtATimeWrites) {
  const std::string first = file("first"), second = file("second");
  {
    RunLog log;
    ScheduleLog* const opened = log.open(first);
    ASSERT_NE(opened, nullptr);
    opened->event("begin_steps");
    RunLog beside;
    EXPECT_EQ(beside.open(second), nullptr);
    EXPECT_FALSE(std::filesystem::exists(second)) << "it isn't even made";
  }
  EXPECT_GT(std::filesystem::file_size(first), 0u);
  RunLog next;
  EXPECT_NE(next.open(second), nullptr);
  std::filesystem::remove(first);
  std::filesystem::remove(second);
}

TEST(RunLogTest, AFileThatCantBeWrittenIsNamed) {
  try {
    RunLog log;
    log.open("/no/such/folder/run.log");
    FAIL() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::io);
    EXPECT_NE(std::string(error.what()).find("/no/such/folder/run.log"), std::string::npos);
  }
  RunLog next;
  EXPECT_NE(next.open(file("next")), nullptr) << "the first has left it";
  std::filesystem::remove(file("next"));
}

}  // namespace
}  // namespace quadriga
