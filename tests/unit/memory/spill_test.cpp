// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/spill_test.cpp: buffers that are counted, reused and refused with the reason.
#include "memory/spill.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

namespace quadriga {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class SpillFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = std::filesystem::temp_directory_path() /
            ("quadriga-spill-test-" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove(file_); }
  std::filesystem::path file_;
};

TEST(SpillTest, CountsAndReusesBuffers) {
  Spill spill(4 * mebibyte, "");
  std::byte* const first = spill.allocate(mebibyte);
  ASSERT_TRUE(first);
  std::memset(first, 1, mebibyte);
  ASSERT_TRUE(spill.allocate(2 * mebibyte));
  EXPECT_EQ(spill.used(), 3 * mebibyte);
  spill.deallocate(first, mebibyte);
  EXPECT_EQ(spill.used(), 2 * mebibyte);
  EXPECT_EQ(spill.most(), 3 * mebibyte);
  EXPECT_EQ(spill.allocate(mebibyte), first);
}

TEST(SpillTest, NamesItsLimitWhenThatIsReached) {
  Spill spill(mebibyte, "");
  EXPECT_FALSE(spill.allocate(2 * mebibyte));
  EXPECT_NE(spill.refusal().find("more than the 1 MiB of host buffers"), std::string::npos)
      << spill.refusal();
  EXPECT_TRUE(spill.allocate(mebibyte));
}

TEST_F(SpillFileTest, NamesTheFileThatCannotGrow) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 2 * mebibyte;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    Spill spill(64 * mebibyte, file_.string());
    EXPECT_TRUE(spill.allocate(mebibyte));
    EXPECT_FALSE(spill.allocate(8 * mebibyte));
    EXPECT_NE(spill.refusal().find(file_.string()), std::string::npos) << spill.refusal();
    EXPECT_EQ(spill.used(), mebibyte);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
}

TEST_F(SpillFileTest, NeverTakesAFileThatIsThere) {
  std::FILE* const there = std::fopen(file_.c_str(), "w");
  ASSERT_TRUE(there);
  std::fputs("mine", there);
  std::fclose(there);
  EXPECT_THROW(Spill(mebibyte, file_.string()), Error);
  EXPECT_EQ(std::filesystem::file_size(file_), 4u);
}

}  // namespace
}  // namespace quadriga
