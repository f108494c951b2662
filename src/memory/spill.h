// SPDX-License-Identifier: BSD-3-Clause
// src/memory/spill.h: host buffers, or a file, for tiles that have no home and fit no device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "memory/host_nodes.h"

namespace quadriga {

/// What the system answers when it is asked for more memory or more of a file, by the number of the
/// question, from 1. It alone is not known to who decides: a log keeps what was refused, and
/// whoever repeats a run is told.
struct SpillAnswers {
  std::function<void(std::uint64_t question)> refused;  ///< Is told of each refusal; may be empty.
  /// Questions that are refused without asking; outlives the buffers. Null: none.
  const std::set<std::uint64_t>* to_refuse = nullptr;
};

/// Hands out buffers up to a limit and keeps count. Those given back are kept for others of their
/// size, as long as all together stay within the limit. With a file, buffers are pages of it,
/// mapped; the file is made where it should be, its blocks reserved as it grows, and removed in the
/// end. Without one, each lies on a node of the host, where these are several. Used by one thread.
class Spill {
 public:
  /// `nodes`: the host's. Errors:  io naming the file if it can't be made.
  Spill(std::size_t limit_bytes, const std::string& file, std::span<const Node> nodes = {},
        SpillAnswers answers = {});
  ~Spill();
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  /// What a buffer of these bytes takes.
  static std::size_t rounded(std::size_t bytes) noexcept;
  /// Null if the limit is reached or the disk is full. `near`: the node that it is for.
  std::byte* allocate(std::size_t bytes, int near = any_node);
  void deallocate(std::byte* buffer, std::size_t bytes) noexcept;
  /// Where a buffer lies.
  int node(std::byte* buffer) const { return owned_.find(buffer)->second.node; }
  const HostNodes& nodes() const noexcept { return nodes_; }

  std::size_t used() const noexcept { return used_; }
  std::size_t most() const noexcept { return most_; }
  std::size_t limit() const noexcept { return limit_; }
  std::size_t room() const noexcept { return limit_ - used_; }
  /// In use or kept.
  std::size_t held() const noexcept { return held_; }
  /// Why the last allocation was refused: what is full, and its size.
  const std::string& refusal() const noexcept { return refusal_; }
  const std::string& file() const noexcept { return file_; }

 private:
  struct Piece {
    std::size_t bytes = 0;
    std::size_t offset = 0;  ///< In the file.
    int node = any_node;
  };
  using Kind = std::pair<std::size_t, int>;  ///< Bytes and node.
  std::byte* ask_for_more(Kind kind);
  std::byte* map_more(Kind kind);
  bool unmap_kept();

  std::size_t limit_;
  std::size_t used_ = 0;
  std::size_t most_ = 0;
  std::string file_;
  std::string refusal_;
  int descriptor_ = -1;
  std::size_t file_bytes_ = 0;
  std::size_t held_ = 0;
  HostNodes nodes_;
  const SpillAnswers answers_;
  std::uint64_t questions_ = 0;
  std::multimap<Kind, std::byte*> free_;  ///< Buffers given back, by size first.
  std::map<std::byte*, Piece> owned_;     ///< All that is mapped.
};

}  // namespace quadriga
