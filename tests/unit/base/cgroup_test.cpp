// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/base/cgroup_test.cpp: limits are found in made-up trees of both versions of cgroups.
#include "base/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace quadriga {
namespace {

namespace fs = std::filesystem;

class Cgroup : public ::testing::Test {
 protected:
  Cgroup() : root_(fs::temp_directory_path() / ("quadriga_cgroup_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
  }
  ~Cgroup() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  SystemPaths paths() const { return {root_ / "proc", root_ / "cgroup"}; }

 private:
  fs::path root_;
};

TEST_F(Cgroup, WithoutAnyTheMachineCounts) {
  EXPECT_GE(usable_cores(paths()), 1);
  EXPECT_GT(usable_memory_bytes(paths()), std::size_t{1} << 20);
}

TEST_F(Cgroup, Version2TakesTheLeastOnTheWayUp) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("cgroup/a/b/cpu.max", "max 100000\n");
  write("cgroup/a/cpu.max", "100000 100000\n");
  write("cgroup/a/b/memory.max", "3000000\n");
  write("cgroup/a/memory.max", "max\n");
  EXPECT_EQ(usable_cores(paths()), 1);
  EXPECT_EQ(usable_memory_bytes(paths()), 3000000u);
}

TEST_F(Cgroup, WhatIsInUseIsNotFree) {
  write("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 7000 kB\n");
  EXPECT_EQ(free_memory_bytes(paths()), 7000u * 1024);
  write("proc/self/cgroup", "0::/a/b\n");
  write("cgroup/a/b/memory.max", "3000000\n");
  write("cgroup/a/b/memory.current", "2000000\n");
  EXPECT_EQ(free_memory_bytes(paths()), 1000000u);
  // What is cached of files can be dropped.
  write("cgroup/a/b/memory.stat", "anon 100\ninactive_file 500000\nactive_file 7\n");
  EXPECT_EQ(free_memory_bytes(paths()), 1500000u);
  write("cgroup/a/memory.max", "2500000\n");
  write("cgroup/a/memory.current", "2400000\n");
  EXPECT_EQ(free_memory_bytes(paths()), 100000u);
  write("cgroup/a/memory.current", "2600000\n");
  EXPECT_EQ(free_memory_bytes(paths()), 0u);
}

TEST_F(Cgroup, WhatIsInUseIsNotFreeInVersion1) {
  write("proc/meminfo", "MemAvailable: 7000 kB\n");
  write("proc/self/cgroup", "3:memory:/x\n0::/\n");
  write("cgroup/memory/x/memory.limit_in_bytes", "5000000\n");
  write("cgroup/memory/x/memory.usage_in_bytes", "4000000\n");
  write("cgroup/memory/x/memory.stat", "cache 1\ntotal_inactive_file 300000\n");
  EXPECT_EQ(free_memory_bytes(paths()), 1300000u);
}

TEST_F(Cgroup, Version2SeenFromAContainer) {
  write("proc/self/cgroup", "0::/../of/the/host\n");
  write("cgroup/memory.max", "4000000\n");
  EXPECT_EQ(usable_memory_bytes(paths()), 4000000u);
}

TEST_F(Cgroup, Version1HasAFolderForEachController) {
  write("proc/self/cgroup", "12:cpuset:/\n4:cpu,cpuacct:/x\n3:memory:/x\n0::/\n");
  write("cgroup/cpu/x/cpu.cfs_quota_us", "50000\n");
  write("cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  write("cgroup/memory/x/memory.limit_in_bytes", "5000000\n");
  EXPECT_EQ(usable_cores(paths()), 1);
  EXPECT_EQ(usable_memory_bytes(paths()), 5000000u);
}

TEST_F(Cgroup, UnlimitedGroupsLimitNothing) {
  write("proc/self/cgroup", "4:cpu:/\n3:memory:/\n");
  write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(usable_cores(paths()), usable_cores({"/nowhere", "/nowhere"}));
  EXPECT_EQ(usable_memory_bytes(paths()), usable_memory_bytes({"/nowhere", "/nowhere"}));
}

}  // namespace
}  // namespace quadriga
