// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/factor_file.cpp: reading and writing the file; space is reserved before anything is
// written.
#include "linalg/factor_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace quadriga::linalg {

void Checksum::add(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t factor = 0xff51afd7ed558ccd;
  constexpr int half = 33;
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), count);
    value_ = (value_ ^ word) * factor;
    value_ ^= value_ >> half;
    bytes = bytes.subspan(count);
  }
}

std::uint64_t checksum_of(FactorHeader header) noexcept {
  header.checksum = 0;
  Checksum sum;
  sum.add(std::as_bytes(std::span(&header, 1)));
  return sum.value();
}

std::uint64_t tile_index(const Tiling& tiling, std::int64_t i, std::int64_t j) noexcept {
  return static_cast<std::uint64_t>(j * tiling.count() - j * (j - 1) / 2 + i - j);
}

std::uint64_t tile_offset(const Tiling& tiling, DType dtype, std::int64_t i,
                          std::int64_t j) noexcept {
  // The columns before j are full tiles wide, and have all rows from their diagonal on.
  const std::int64_t before = tiling.tile * (j * tiling.size - tiling.tile * (j * (j - 1) / 2));
  const std::int64_t elements = before + tiling.length(j) * (tiling.first(i) - tiling.first(j));
  return sizeof(FactorHeader) + static_cast<std::uint64_t>(elements) * size_of(dtype);
}

std::uint64_t payload_bytes(const Tiling& tiling, DType dtype) noexcept {
  const std::int64_t count = tiling.count();
  if (count == 0) return 0;
  const std::int64_t last = tiling.length(count - 1);
  return tile_offset(tiling, dtype, count - 1, count - 1) - sizeof(FactorHeader) +
         static_cast<std::uint64_t>(last * last) * size_of(dtype);
}

void FactorFile::refuse(const std::string& what) const {
  fail(Errc::io, fmt::format("'{}': {}", path_, what));
}

void FactorFile::failed(const char* what) const {
  const int reason = errno;
  refuse(fmt::format("{} failed: {}", what, std::strerror(reason)));
}

namespace {

namespace fs = std::filesystem;

/// Behind the tiles: a sum of each.
std::uint64_t sums_bytes(const FactorHeader& header) noexcept {
  if (header.version < 2) return 0;
  const auto count = static_cast<std::uint64_t>(Tiling{header.order, header.tile}.count());
  return count * (count + 1) / 2 * sizeof(std::uint64_t);
}

/// Whether sizes computed from the header are those that it means: none wraps.
bool is_sound(const FactorHeader& header) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (header.dtype > 3 || header.upper > 1 || header.order < 0 || header.order >= most ||
      header.tile <= 0 || header.tile >= most)
    return false;
  constexpr double largest = 4e18;  // less than 2^62
  const auto order = static_cast<double>(header.order);
  const double tile = std::min(order, static_cast<double>(header.tile));
  const auto dtype = static_cast<DType>(header.dtype);
  if (order * (order + tile) * static_cast<double>(size_of(dtype)) > largest) return false;
  return header.bytes == payload_bytes({header.order, header.tile}, dtype);
}

/// Where links lead, the last of which may lead to nothing yet.
fs::path behind_links(fs::path path) {
  constexpr int most_links = 40;
  std::error_code no_link;
  for (int i = 0; i < most_links && !no_link; ++i) {
    const fs::path next = fs::read_symlink(path, no_link);
    if (!no_link) path = path.parent_path() / next;
  }
  return path;
}

/// Part of the name only: a long one with more behind it wouldn't be a name any more.
std::string hidden_name_beside(const fs::path& path, unsigned number) {
  constexpr std::size_t part = 40;
  return path.parent_path() /
         fmt::format(".{}.{:08x}.part", path.filename().string().substr(0, part), number);
}

/// A new file under a name that nobody has, with the mode that the umask gives it.
int make_beside(const fs::path& path, std::string& name) {
  constexpr int tries = 100;
  constexpr mode_t mode = 0666;
  std::random_device random;
  for (int i = 0; i < tries; ++i) {
    name = hidden_name_beside(path, random());
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

}  // namespace

FactorFile FactorFile::create(const std::string& path, const FactorHeader& header) {
  FactorFile file;
  file.path_ = behind_links(path);
  file.header_ = header;
  file.header_.checksum = checksum_of(header);
  std::error_code missing;
  const fs::file_status there = fs::status(file.path_, missing);
  if (fs::exists(there) && !fs::is_regular_file(there))
    file.refuse("is not a regular file; expected one, which is replaced, or a new name");
  std::string beside;
  file.descriptor_ = make_beside(file.path_, beside);
  if (file.descriptor_ < 0) file.failed("making a file beside it");
  file.temporary_ = beside;
  const auto bytes = static_cast<off_t>(sizeof(FactorHeader) + header.bytes + sums_bytes(header));
  if (const int error = ::posix_fallocate(file.descriptor_, 0, bytes); error != 0) {
    errno = error;
    file.failed(fmt::format("reserving {} bytes", bytes).c_str());
  }
  file.write(0, std::as_bytes(std::span(&file.header_, 1)));
  return file;
}

FactorFile FactorFile::open(const std::string& path) {
  FactorFile file;
  file.path_ = path;
  require_regular(path);
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.descriptor_ < 0) file.failed("opening it");
  struct stat status {};
  if (::fstat(file.descriptor_, &status) != 0) file.failed("looking at it");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size < sizeof(FactorHeader))
    file.refuse("not a factor file: it is too short");
  file.read(0, std::as_writable_bytes(std::span(&file.header_, 1)));
  const FactorHeader& header = file.header_;
  file.check_header();
  const std::uint64_t whole = sizeof(FactorHeader) + header.bytes + sums_bytes(header);
  if (size != whole)
    file.refuse(fmt::format("a factor of {} bytes, and the file has {}: truncated or damaged",
                            whole, size));
  return file;
}

void FactorFile::check_header() const {
  if (std::memcmp(header_.magic, FactorHeader{}.magic, sizeof(header_.magic)) != 0)
    refuse("not a factor file: it doesn't begin with the format's signature");
  if (header_.version != 1 && header_.version != 2)
    refuse(fmt::format("a factor file of version {}; this release reads versions 1 and 2",
                       header_.version));
  if (!is_sound(header_)) refuse("a factor whose header contradicts itself");
  if (header_.version == 2 && header_.checksum != checksum_of(header_))
    refuse("a factor whose header doesn't match its checksum: the file is damaged");
}

FactorFile::FactorFile(FactorFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      header_(other.header_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

FactorFile::~FactorFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void FactorFile::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) failed("writing");
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
}

void FactorFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done =
        ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) failed("reading");
    if (done == 0) refuse("the file ends too soon");
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
}

void FactorFile::write_sum(std::uint64_t index, const Checksum& sum) const {
  const std::uint64_t value = sum.value();
  write(sizeof(FactorHeader) + header_.bytes + index * sizeof(value),
        std::as_bytes(std::span(&value, 1)));
}

void FactorFile::check_sum(std::uint64_t index, const Checksum& sum) const {
  if (header_.version < 2) return;
  std::uint64_t value = 0;
  read(sizeof(FactorHeader) + header_.bytes + index * sizeof(value),
       std::as_writable_bytes(std::span(&value, 1)));
  if (value != sum.value())
    refuse(fmt::format("tile {} of the factor doesn't match its checksum: the file is damaged",
                       index));
}

void FactorFile::commit() {
  constexpr mode_t permissions = 07777;
  struct stat replaced {};
  if (::stat(path_.c_str(), &replaced) == 0 &&
      ::fchmod(descriptor_, replaced.st_mode & permissions) != 0)
    failed("setting its mode");
  if (::fsync(descriptor_) != 0) failed("writing");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) failed("renaming");
  temporary_.clear();
}

}  // namespace quadriga::linalg
