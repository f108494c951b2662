// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/log_claim_test.cpp: the schedule's log is that of the first open engine.
#include "engine/log_claim.h"

#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/config.h"

namespace quadriga {
namespace {

class LogClaims : public ::testing::Test {
 protected:
  LogClaims()
      : file_(std::filesystem::path(::testing::TempDir()) /
              ("log-claim-" + std::to_string(::getpid()))) {
    Config::global().set("schedule_log", file_.string());
  }
  ~LogClaims() override {
    Config::global().unset("schedule_log");
    std::filesystem::remove(file_);
  }
  static std::unique_ptr<Engine> engine(const std::string& memory) {
    EngineOptions options;
    options.devices = "emulated:1,memory=" + memory;
    options.virtual_clock = true;
    return std::make_unique<Engine>(options);
  }
  /// The log's first line, which describes the machine.
  std::string head() const {
    std::ifstream in(file_);
    std::string line;
    std::getline(in, line);
    return line;
  }

 private:
  std::filesystem::path file_;
};

TEST_F(LogClaims, AnEngineBesideAnotherLeavesItsLogAlone) {
  auto first = engine("12345KiB");
  engine("67890KiB").reset();
  first.reset();
  EXPECT_NE(head().find(std::to_string(12345 << 10)), std::string::npos) << head();
}

TEST_F(LogClaims, TheNextEngineWritesItsOwn) {
  engine("12345KiB").reset();
  engine("67890KiB").reset();
  EXPECT_NE(head().find(std::to_string(67890 << 10)), std::string::npos) << head();
}

TEST_F(LogClaims, AnEngineThatCouldNotBeMadeKeepsNone) {
  EngineOptions options;
  options.devices = "emulated:1,memory=1MiB";
  options.virtual_clock = true;
  options.policy = "no such policy";
  EXPECT_THROW(Engine{options}, Error);
  LogClaim claim;
  EXPECT_TRUE(claim.take());
}

}  // namespace
}  // namespace quadriga
