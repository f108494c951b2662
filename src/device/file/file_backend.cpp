// SPDX-License-Identifier: BSD-3-Clause
// src/device/file/file_backend.cpp: files that are read and written where addresses that nobody can
// touch say.
//
// Invariants
//   1. `reserved_` bytes from the file's begin on have blocks on the disk. mutex_ guards it; reads
//      and writes at a place need no lock, as copies of one place wait for each other.
#include "device/file/file_backend.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <quadriga/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "device/emulated_memory.h"
#include "device/threaded_backend.h"

namespace quadriga {
namespace {

/// An open file without a name, which goes with its descriptor. Its blocks are reserved before they
/// are written, and all below them: a write that ends is on the disk, and once one is refused those
/// behind it are too.
class File {
 public:
  File(std::string path, std::size_t bytes) : path_(std::move(path)) {
    if (path_.empty()) {
      path_ = (std::filesystem::temp_directory_path() / "quadriga-XXXXXX").string();
      descriptor_ = ::mkostemp(path_.data(), O_CLOEXEC);
    } else {
      descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (descriptor_ < 0)
      fail(Errc::io,
           fmt::format("can't make the file '{}' of a memory space: {}; it must not exist", path_,
                       std::strerror(errno)));
    ::unlink(path_.c_str());
    std::error_code unknown;
    const auto disk =
        std::filesystem::space(std::filesystem::absolute(path_).parent_path(), unknown);
    if (unknown || bytes <= disk.capacity) return;
    ::close(descriptor_);
    fail(Errc::io, fmt::format("the file '{}' of a memory space gets no {} on its disk of {}",
                               path_, format_bytes(static_cast<double>(bytes)),
                               format_bytes(static_cast<double>(disk.capacity))));
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void read(std::byte* to, std::size_t bytes, std::size_t offset) const {
    transfer("read", bytes, [&](std::size_t done) {
      return ::pread(descriptor_, to + done, bytes - done, static_cast<off_t>(offset + done));
    });
  }
  /// Errors:  io if the disk is full.
  void write(const std::byte* from, std::size_t bytes, std::size_t offset) {
    reserve(offset + bytes);
    transfer("write", bytes, [&](std::size_t done) {
      return ::pwrite(descriptor_, from + done, bytes - done, static_cast<off_t>(offset + done));
    });
  }

 private:
  /// A file system that can't reserve has the blocks written, which a server may refuse later.
  int allocate(off_t from, off_t bytes) const {
    if (::fallocate(descriptor_, 0, from, bytes) == 0) return 0;
    if (errno != EOPNOTSUPP) return errno;
    const int error = ::posix_fallocate(descriptor_, from, bytes);
    return error == 0 && ::fdatasync(descriptor_) != 0 ? errno : error;
  }
  void reserve(std::size_t end) {
    const std::lock_guard lock(mutex_);
    if (end <= reserved_) return;
    int error = EINTR;
    while (error == EINTR)
      error = allocate(static_cast<off_t>(reserved_), static_cast<off_t>(end - reserved_));
    if (error != 0)
      fail(Errc::io,
           fmt::format("the file '{}' of a memory space can't grow beyond {}: {}", path_,
                       format_bytes(static_cast<double>(reserved_)), std::strerror(error)));
    reserved_ = end;
  }

  /// All bytes, by as many calls as it takes.
  template <class Call>
  void transfer(std::string_view what, std::size_t bytes, Call&& call) const {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t count = call(done);
      if (count > 0) done += static_cast<std::size_t>(count);
      if (count > 0 || (count < 0 && errno == EINTR)) continue;
      fail(Errc::io, fmt::format("can't {} {} bytes of the file '{}': {}", what, bytes - done,
                                 path_, count < 0 ? std::strerror(errno) : "it ends before them"));
    }
  }

  std::string path_;
  int descriptor_ = -1;
  std::mutex mutex_;
  std::size_t reserved_ = 0;  ///< Guarded by mutex_.
};

/// A device's file, and the addresses that stand for places in it.
struct FileSpace {
  explicit FileSpace(const Device& device)
      : addresses(device.memory_bytes, false), file(device.path, device.memory_bytes) {}
  EmulatedMemory addresses;
  File file;
};

class Files final : public ThreadedMemory {
 public:
  explicit Files(Machine machine) : machine_(std::move(machine)) {
    for (const Device& device : machine_.devices) files_.emplace_back(device);
  }

  std::byte* allocate(DeviceId device, std::size_t bytes) override {
    return files_[device].addresses.allocate(bytes);
  }
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    files_[device].addresses.deallocate(memory);
  }
  void check(const Launch& launch) const override {
    fail(Errc::invalid_argument, fmt::format("'{}' can't run in a file", launch.name));
  }
  void copy(const Copy& copy, const std::atomic<bool>& stopping) override {
    if (bytes_of(copy) == 0) return;
    for_each_piece(copy, [&](const Copy& each) { copy_runs(each, stopping); });
  }

 private:
  void copy_runs(const Copy& copy, const std::atomic<bool>& stopping) {
    const bool out = copy.to == host_space;
    FileSpace& space = at(out ? copy.from : copy.to);
    const std::byte* const base = space.addresses.base();
    for (std::size_t run = 0; run < copy.height && !stopping; ++run) {
      const std::byte* const source = copy.source + run * copy.source_pitch;
      std::byte* const target = copy.target + run * copy.target_pitch;
      if (out)
        space.file.read(target, copy.width_bytes, static_cast<std::size_t>(source - base));
      else
        space.file.write(source, copy.width_bytes, static_cast<std::size_t>(target - base));
    }
  }

  FileSpace& at(SpaceId space) {
    const auto found = std::ranges::find(machine_.devices, space, &Device::space);
    return files_[static_cast<std::size_t>(found - machine_.devices.begin())];
  }

  const Machine machine_;
  std::deque<FileSpace> files_;  // By device.
};

}  // namespace

std::unique_ptr<Backend> make_file_backend(Machine machine) {
  for (const Device& device : machine.devices)
    require(device.kind == DeviceKind::file && device.space != host_space,
            "the file backend drives devices of kind file only, each with a space of its own");
  for (const Route& route : machine.routes)
    require(route.from == host_space || route.to == host_space,
            "what is in a file is copied from and to the host only");
  auto files = std::make_unique<Files>(machine);
  return std::make_unique<ThreadedBackend>(std::move(machine), 1, std::move(files));
}

}  // namespace quadriga
