// SPDX-License-Identifier: BSD-3-Clause
// src/device/spill_file.cpp: how large a spill file may become, and how fast its disk is.
#include <fmt/format.h>
#include <quadriga/spill_file.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/config.h"
#include "base/log.h"
#include "base/units.h"
#include "device/file/file_space.h"
#include "device/kinds.h"

namespace quadriga {
namespace {

namespace fs = std::filesystem;

/// Less makes no space of memory.
constexpr std::uintmax_t least_bytes = 4096;

/// A file's places are addresses: a part of those that a process has, for several engines.
std::uintmax_t most_addresses() {
  constexpr std::uintmax_t most_bytes = std::uintmax_t{4} << 40;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return most_bytes;
  return std::clamp(limit.rlim_cur / 4, least_bytes, most_bytes);
}

/// Where nothing is measured or stated.
constexpr double usual_bytes_per_second = 1e9;

/// The setting `spill_rate`: one rate, or that of writing and that of reading.
std::optional<DiskSpeed> stated_speed() {
  const std::string text = Config::global().text("spill_rate");
  if (text.empty()) return std::nullopt;
  const std::size_t comma = text.find(',');
  const double write = parse_bytes_per_second(text.substr(0, comma));
  const double read =
      comma == std::string::npos ? write : parse_bytes_per_second(text.substr(comma + 1));
  return DiskSpeed{write, read};
}

DiskSpeed speed_of(const std::string& folder, bool measures) {
  if (const std::optional<DiskSpeed> stated = stated_speed()) return *stated;
  const std::optional<DiskSpeed> measured = measures ? disk_speed(folder) : std::nullopt;
  if (!measured) return {usual_bytes_per_second, usual_bytes_per_second};
  log(LogLevel::info, fmt::format("the disk of '{}' writes {} and reads {}", folder,
                                  format_bytes_per_second(measured->write_bytes_per_second),
                                  format_bytes_per_second(measured->read_bytes_per_second)));
  return *measured;
}

}  // namespace

Machine with_spill(Machine machine, const std::string& file, bool measures) {
  for (const Device& device : machine.devices)
    if (properties_of(device.kind).only_stores) return machine;
  const std::string folder = fs::absolute(file).parent_path().string();
  std::error_code none;
  const fs::space_info disk = fs::space(folder, none);
  // Without its folder there is room for none, which is said when the file is made.
  const std::uintmax_t bytes = none ? 0 : measures ? disk.available : disk.capacity;
  if (!none && bytes < least_bytes) {
    log(LogLevel::warning, fmt::format("the disk of '{}' is full: nothing is spilled there", file));
    return machine;
  }
  add_file_space(machine, file, std::min(bytes, most_addresses()), speed_of(folder, measures));
  return machine;
}

}  // namespace quadriga
