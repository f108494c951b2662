// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/spill_test.cpp: buffers that are counted, reused and refused with the reason.
#include "memory/spill.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

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

/// Buffers of other sizes than before, and all that they hold together.
void change_sizes(Spill& spill) {
  for (const std::size_t size : {mebibyte, 2 * mebibyte, 4 * mebibyte, mebibyte}) {
    std::vector<std::byte*> buffers;
    for (std::size_t used = 0; used < 4 * mebibyte; used += size) {
      buffers.push_back(spill.allocate(size));
      ASSERT_TRUE(buffers.back()) << spill.refusal();
      std::memset(buffers.back(), 1, size);
      EXPECT_LE(spill.held(), spill.limit()) << "given back, and kept";
    }
    for (std::byte* const buffer : buffers) spill.deallocate(buffer, size);
  }
}

TEST(SpillTest, BuffersOfASizeLeaveTheirMemoryToOthers) {
  Spill spill(4 * mebibyte, "");
  change_sizes(spill);
}

TEST_F(SpillFileTest, BuffersOfASizeLeaveTheirDiskToOthers) {
  Spill spill(4 * mebibyte, file_.string());
  change_sizes(spill);
  // The file was unlinked: its blocks are seen where it is open.
  std::size_t blocks = 0;
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    const std::string name = std::filesystem::read_symlink(open, none).string();
    struct stat found = {};
    if (name.starts_with(file_.string()) && stat(open.path().c_str(), &found) == 0)
      blocks += static_cast<std::size_t>(found.st_blocks);
  }
  EXPECT_GT(blocks, 0u);
  EXPECT_LE(blocks * 512, 5 * mebibyte);
}

TEST(SpillTest, NamesItsLimitWhenThatIsReached) {
  Spill spill(mebibyte, "");
  EXPECT_FALSE(spill.allocate(2 * mebibyte));
  EXPECT_NE(spill.refusal().find("more than the 1 MiB of host buffers"), std::string::npos)
      << spill.refusal();
  EXPECT_TRUE(spill.allocate(mebibyte));
}

TEST(SpillTest, RefusesWhatARepeatedRunDidNotGet) {
  const std::set<std::uint64_t> refused = {2, 4};
  Spill spill(8 * mebibyte, "", {}, {.refused = {}, .to_refuse = &refused});
  std::byte* const first = spill.allocate(mebibyte);
  ASSERT_TRUE(first);
  EXPECT_FALSE(spill.allocate(mebibyte));
  spill.deallocate(first, mebibyte);
  EXPECT_EQ(spill.allocate(mebibyte), first) << "the system isn't asked for it";
  EXPECT_TRUE(spill.allocate(mebibyte)) << "the third question";
  EXPECT_FALSE(spill.allocate(mebibyte));
  EXPECT_EQ(spill.used(), 2 * mebibyte);
}

TEST_F(SpillFileTest, NamesTheFileThatCannotGrow) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 2 * mebibyte;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    std::vector<std::uint64_t> refused;
    const auto note = [&](std::uint64_t question) { refused.push_back(question); };
    Spill spill(64 * mebibyte, file_.string(), {}, {.refused = note, .to_refuse = nullptr});
    EXPECT_TRUE(spill.allocate(mebibyte));
    EXPECT_FALSE(spill.allocate(8 * mebibyte));
    EXPECT_EQ(refused, std::vector<std::uint64_t>{2});
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
