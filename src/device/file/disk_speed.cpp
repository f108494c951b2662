// SPDX-License-Identifier: BSD-3-Clause
// src/device/file/disk_speed.cpp: blocks that are written, synchronized, and read.
//
// Invariants
//   1. `mutex` guards `known`, and is held while a disk is measured: two measurements at once would
//      share its rate.
#include "device/file/disk_speed.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace quadriga {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t block_bytes = std::size_t{4} << 20;
constexpr std::size_t most_bytes = std::size_t{64} << 20;
constexpr double most_seconds = 0.1;

/// Closed with its scope.
struct MeasuredFile {
  int number = -1;
  explicit MeasuredFile(int opened) : number(opened) {}
  ~MeasuredFile() {
    if (number >= 0) ::close(number);
  }
  MeasuredFile(const MeasuredFile&) = delete;
  MeasuredFile& operator=(const MeasuredFile&) = delete;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Moves blocks by call(place) until there are enough or it takes too long; how many bytes.
template <class Call>
std::size_t move_blocks(std::size_t most, Clock::time_point begin, Call&& call) {
  std::size_t done = 0;
  while (done < most && seconds_since(begin) < most_seconds) {
    const ssize_t count = call(static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

std::optional<DiskSpeed> measure(const std::string& folder) {
  std::string name = folder + "/quadriga-disk-XXXXXX";
  const MeasuredFile file(::mkostemp(name.data(), O_CLOEXEC | O_DSYNC));
  if (file.number < 0) return std::nullopt;
  ::unlink(name.c_str());
  // Not zeros, which some file systems don't store.
  std::vector<unsigned char> block(block_bytes);
  for (std::size_t i = 0; i < block.size(); ++i)
    block[i] = static_cast<unsigned char>(i * 2654435761U >> 13);
  const auto writing = Clock::now();
  const std::size_t written = move_blocks(most_bytes, writing, [&](off_t at) {
    return ::pwrite(file.number, block.data(), block.size(), at);
  });
  if (written == 0 || ::fdatasync(file.number) != 0) return std::nullopt;
  DiskSpeed speed;
  speed.write_bytes_per_second = static_cast<double>(written) / seconds_since(writing);
  // From the disk, not from the system's cache, where that lets go of it.
  ::posix_fadvise(file.number, 0, 0, POSIX_FADV_DONTNEED);
  const auto reading = Clock::now();
  const std::size_t read = move_blocks(written, reading, [&](off_t at) {
    return ::pread(file.number, block.data(), block.size(), at);
  });
  if (read == 0) return std::nullopt;
  speed.read_bytes_per_second = static_cast<double>(read) / seconds_since(reading);
  return speed;
}

}  // namespace

std::optional<DiskSpeed> disk_speed(const std::string& folder) {
  static std::mutex mutex;
  static std::map<dev_t, DiskSpeed> known;
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) return std::nullopt;
  const std::lock_guard lock(mutex);
  if (const auto entry = known.find(found.st_dev); entry != known.end()) return entry->second;
  const std::optional<DiskSpeed> speed = measure(folder);
  if (speed) known.emplace(found.st_dev, *speed);
  return speed;
}

}  // namespace quadriga
