// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/factor_file.h: the file that holds a factor (docs/factor-file.md).
#pragma once

#include "linalg/cut.h"

#include <quadriga/linalg.h>

#include <string>

namespace quadriga::linalg {

/// What the first 64 bytes say; all little-endian.
struct FactorHeader {
  char magic[8] = {'Q', 'D', 'F', 'A', 'C', 'T', 'O', 'R'};
  std::uint32_t version = 1;
  std::uint32_t dtype = 0;  ///< As DType: float32, float64, complex64, complex128.
  std::uint32_t upper = 0;  ///< 0: lower.
  std::uint32_t reserved = 0;
  std::int64_t order = 0;
  std::int64_t tile = 0;
  std::uint64_t bytes = 0;  ///< Of the tiles that follow.
  std::byte unused[16] = {};
};
static_assert(sizeof(FactorHeader) == 64);

/// Where the tile for the lower triangle's (i,j), i >= j, begins: tiles follow column by column.
std::uint64_t tile_offset(const Cut& cut, DType dtype, std::int64_t i, std::int64_t j) noexcept;
/// Bytes of all tiles of the triangle.
std::uint64_t payload_bytes(const Cut& cut, DType dtype) noexcept;

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
  /// Gives the file its name.
  void commit();

 private:
  FactorFile() = default;
  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void failed(const char* what) const;

  std::string path_;
  std::string temporary_;  ///< Empty once committed, and for files that are read.
  FactorHeader header_;
  int descriptor_ = -1;
};

}  // namespace quadriga::linalg
