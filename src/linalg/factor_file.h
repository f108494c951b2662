// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/factor_file.h: the file that holds a factor (docs/factor-file.md).
#pragma once

#include "linalg/tiling.h"

#include <quadriga/linalg.h>

#include <span>
#include <string>

namespace quadriga::linalg {

/// What the first 64 bytes say; all little-endian.
struct FactorHeader {
  char magic[8] = {'Q', 'D', 'F', 'A', 'C', 'T', 'O', 'R'};
  std::uint32_t version = 2;  ///< 1 has no checksums.
  std::uint32_t dtype = 0;    ///< As DType: float32, float64, complex64, complex128.
  std::uint32_t upper = 0;    ///< 0: lower.
  std::uint32_t reserved = 0;
  std::int64_t order = 0;
  std::int64_t tile = 0;
  std::uint64_t bytes = 0;     ///< Of the tiles that follow.
  std::uint64_t checksum = 0;  ///< Of these 64 bytes, with 0 here.
  std::byte unused[8] = {};
};
static_assert(sizeof(FactorHeader) == 64);

/// Words of 8 bytes, each mixed into 64 bits by steps that can be undone: whatever changes in one
/// word changes the result. Source: the finalizers of Appleby's MurmurHash3.
class Checksum {
 public:
  /// The last word is filled with zeros.
  void add(std::span<const std::byte> bytes) noexcept;
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};
std::uint64_t checksum_of(FactorHeader header) noexcept;

/// Where the tile for the lower triangle's (i,j), i >= j, begins: tiles follow column by column.
std::uint64_t tile_offset(const Tiling& tiling, DType dtype, std::int64_t i,
                          std::int64_t j) noexcept;
/// How many tiles come before the one for (i,j).
std::uint64_t tile_index(const Tiling& tiling, std::int64_t i, std::int64_t j) noexcept;
/// Bytes of all tiles of the triangle.
std::uint64_t payload_bytes(const Tiling& tiling, DType dtype) noexcept;

/// A file that appears under its name only once commit() was called, or one that is read.
class FactorFile {
 public:
  /// Makes a file beside `path` and reserves its space.
  /// Errors: io naming the file and the reason, as a full disk.
  static FactorFile create(const std::string& path, const FactorHeader& header);
  /// Errors: io if it is missing, no factor of a version known here, truncated or too long.
  static FactorFile open(const std::string& path);
  ~FactorFile();
  FactorFile(FactorFile&& other) noexcept;
  FactorFile& operator=(FactorFile&&) = delete;

  const FactorHeader& header() const noexcept { return header_; }
  /// Any thread. Errors: io.
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Of the tile with an index: the sum of its columns, one after the other. Any thread.
  void write_sum(std::uint64_t index, const Checksum& sum) const;
  /// Errors: io if the file has another sum.
  void check_sum(std::uint64_t index, const Checksum& sum) const;
  /// Gives the file its name, and the mode of one that it replaces.
  void commit();

 private:
  FactorFile() = default;
  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void failed(const char* what) const;
  void check_header() const;

  std::string path_;
  std::string temporary_;  ///< Empty once committed, and for files that are read.
  FactorHeader header_;
  int descriptor_ = -1;
};

}  // namespace quadriga::linalg
