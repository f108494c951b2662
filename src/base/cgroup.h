// SPDX-License-Identifier: BSD-3-Clause
// src/base/cgroup.h: how many cores and how much memory this process may use.
#pragma once

#include <cstddef>
#include <string>

namespace quadriga {

/// Where the kernel's files are; tests put others in their place.
struct SystemPaths {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

/// Cores that the affinity mask and the CPU quotas of cgroups (v1 or v2) leave, at least 1.
///
/// A quota counts to the nearest whole core: 150 % of a CPU is 2 cores, 140 % is 1.
int usable_cores(const SystemPaths& paths = {});

/// Bytes of memory that the machine has and the limits of cgroups (v1 or v2) allow.
std::size_t usable_memory_bytes(const SystemPaths& paths = {});

/// Of these, bytes that nobody uses now: what is cached of files counts as unused where the kernel
/// drops it first.
std::size_t free_memory_bytes(const SystemPaths& paths = {});

}  // namespace quadriga
