// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/voltages.cpp: raw complex voltages of 8 bits, read where the chunk lies.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/readers.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace quadriga {
namespace {

/// Where a file is read, by all copies of a source.
struct VoltageFile {
  std::string path;
  std::ifstream file;
  std::int64_t left = 0;  ///< Chunks.
};

}  // namespace

Pipeline::Source voltages(std::string path, std::int64_t samples) {
  require(samples > 0, "voltages(): samples of a chunk must be at least 1");
  require_regular(path);
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file)
    fail(Errc::io, fmt::format("{}: can't be read{}", path, error ? ": " + error.message() : ""));
  if (size % 2 != 0)
    fail(Errc::io, fmt::format("{}: is truncated: {} bytes of data are {} pairs and a byte", path,
                               size, size / 2));
  const auto found = static_cast<std::int64_t>(size / 2);
  require(found >= samples,
          fmt::format("{}: has {} samples, fewer than the {} of a chunk", path, found, samples));
  require(found % samples == 0,
          fmt::format("{}: has {} samples, which are {} chunks of {} and {} more", path, found,
                      found / samples, samples, found % samples));
  const auto shared = std::make_shared<VoltageFile>();
  *shared = {std::move(path), std::move(file), found / samples};
  return [shared, samples](Chunk& chunk) {
    if (shared->left == 0) return false;
    const View view = chunk.add("array", 2 * samples, 1, DType::bytes);
    if (!shared->file.read(view.as<char>(), 2 * samples))
      fail(Errc::io, shared->path + ": became shorter while it was read");
    --shared->left;
    return true;
  };
}

}  // namespace quadriga
