// SPDX-License-Identifier: BSD-3-Clause
// src/base/cgroup.cpp: reads limits of control groups, version 1 and 2, from this group up to the
// root.
#include "base/cgroup.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

namespace quadriga {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

// A controller's group of this process, as /proc/self/cgroup tells.
struct ControllerGroup {
  std::string mount;  // Folder of the hierarchy.
  std::string path;   // Of the group inside it, as "/user.slice/a".
  bool unified = false;
};

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<double> number_in(const std::string& path) {
  const auto line = first_line(path);
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  double value = 0;
  if (!(words >> value)) return std::nullopt;
  return value;
}

bool lists(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == wanted) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

// Version 1's hierarchy if the controller is mounted there, else version 2's single one.
std::optional<ControllerGroup> group_of(const SystemPaths& paths, const std::string& controller) {
  std::ifstream file(paths.proc + "/self/cgroup");
  std::optional<ControllerGroup> unified;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) unified = ControllerGroup{paths.cgroup, path, true};
    if (lists(controllers, controller))
      return ControllerGroup{paths.cgroup + "/" + controller, path, false};
  }
  return unified;
}

// The least of limit(folder) over the group and its ancestors. A container may see its own group
// at the root of the mount while /proc names it by the host's path, so absent folders are passed.
double least_limit(const SystemPaths& paths, const std::string& controller,
                   double (*limit)(const std::string& folder, bool unified)) {
  const auto group = group_of(paths, controller);
  if (!group) return no_limit;
  double least = no_limit;
  std::string path = group->path == "/" ? "" : group->path;
  while (true) {
    least = std::min(least, limit(group->mount + path, group->unified));
    if (path.empty()) return least;
    path.erase(std::min(path.rfind('/'), path.size()));
  }
}

double core_limit(const std::string& folder, bool unified) {
  double quota = -1;
  double period = 0;
  if (unified) {
    // "max 100000" leaves the quota unread, and so no limit.
    std::istringstream words(first_line(folder + "/cpu.max").value_or(""));
    if (!(words >> quota >> period)) return no_limit;
  } else {
    quota = number_in(folder + "/cpu.cfs_quota_us").value_or(-1);
    period = number_in(folder + "/cpu.cfs_period_us").value_or(0);
  }
  return quota > 0 && period > 0 ? quota / period : no_limit;
}

double memory_limit(const std::string& folder, bool unified) {
  const auto limit = number_in(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"));
  return limit.value_or(no_limit);
}

/// The number behind a word in a file of such pairs.
double number_of(const std::string& path, std::string_view wanted) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    if (words >> name >> value && name == wanted) return value;
  }
  return 0;
}

double free_memory(const std::string& folder, bool unified) {
  const double limit = memory_limit(folder, unified);
  const auto used =
      number_in(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  const double dropped =
      number_of(folder + "/memory.stat", unified ? "inactive_file" : "total_inactive_file");
  return std::max(0.0, limit - std::max(0.0, used - dropped));
}

int affinity_cores() {
  // A machine with more than 1024 processors needs a mask of more than the default size.
  for (int count = 1024; count <= 1 << 20; count *= 2) {
    cpu_set_t* const mask = CPU_ALLOC(count);
    const std::size_t size = CPU_ALLOC_SIZE(count);
    const bool read = ::sched_getaffinity(0, size, mask) == 0;
    const int cores = read ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (read) return cores;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int usable_cores(const SystemPaths& paths) {
  const double quota = least_limit(paths, "cpu", core_limit);
  const int cores = std::max(affinity_cores(), 1);
  if (quota >= cores) return cores;
  return std::max(static_cast<int>(std::lround(quota)), 1);
}

std::size_t usable_memory_bytes(const SystemPaths& paths) {
  const double physical =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return static_cast<std::size_t>(std::min(physical, least_limit(paths, "memory", memory_limit)));
}

std::size_t free_memory_bytes(const SystemPaths& paths) {
  constexpr double kibi = 1024;
  const double available = number_of(paths.proc + "/meminfo", "MemAvailable:") * kibi;
  const double all = static_cast<double>(usable_memory_bytes(paths));
  const double here = available > 0 ? std::min(all, available) : all;
  return static_cast<std::size_t>(std::min(here, least_limit(paths, "memory", free_memory)));
}

}  // namespace quadriga
