// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/returned_field.h: a field that a kernel returns, of a size that is known at its end.
//
// The body's array is the program's, wherever it lies. On cores it is the field; on a device a task
// copies it into a tile there, so that later kernels and the copy home see what they always see.
#pragma once

#include <quadriga/chunk.h>
#include <quadriga/codelet.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace quadriga {

class ReturnedField {
 public:
  /// Asked as the chunk arrives.
  using Most = std::function<std::size_t(const Chunk& chunk)>;
  /// Its size once the kernel has ended, and where it lies: the body's array on the host, its home
  /// elsewhere; nowhere if it is temporary on a device. The chunk has it from then on.
  using Take = std::function<View(Chunk& chunk, bool is_on_host, bool is_temporary)>;
  using Params = std::function<std::vector<std::byte>(const Chunk& chunk)>;

  std::string name;
  Most most = {};  ///< Its bytes at most; empty: presumed from chunks before.
  Take take = {};
  const Codelet* fill = nullptr;  ///< Writes a tile with what the body returned.
  Params fill_params = {};
  std::function<void(const Chunk& chunk)> filled = {};  ///< These tasks have ended.

  /// What is to be reserved for it: nobody knows more before the kernel's end.
  std::size_t expected_bytes(const Chunk& chunk) const;
  /// It has this size. Errors: too_large if that is more than was stated.
  void came(const Chunk& chunk, const View& view) const;

 private:
  /// The most bytes so far for a byte that the source gave. One: before the first is known.
  std::shared_ptr<std::atomic<double>> ratio_ = std::make_shared<std::atomic<double>>(-1.0);
};

}  // namespace quadriga
