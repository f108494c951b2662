// SPDX-License-Identifier: BSD-3-Clause
// src/memory/spill.cpp: buffers from memory or from a file that is reserved before it is mapped.
#include "memory/spill.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <quadriga/error.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "base/units.h"

namespace quadriga {

namespace {

constexpr int most_nodes = 1024;  // Of Linux.

/// Has the system take a buffer's pages from a node where that has free ones, when they are first
/// touched; the kernel's mbind() without the library around it. A system that won't, or that has no
/// such node, as where a description is emulated, takes them from anywhere.
void prefer_node(std::byte* buffer, std::size_t bytes, int node) noexcept {
  constexpr int bits = std::numeric_limits<unsigned long>::digits;
  std::array<unsigned long, most_nodes / bits> mask{};
  if (node >= most_nodes) return;
  mask[static_cast<std::size_t>(node / bits)] = 1UL << (node % bits);
  // The kernel takes the number of bits to be one more than it says.
  syscall(SYS_mbind, buffer, bytes, MPOL_PREFERRED, mask.data(), most_nodes + 1UL, 0U);
}

}  // namespace

/// To whole pages.
std::size_t Spill::rounded(std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Spill::Spill(std::size_t limit_bytes, const std::string& file, std::span<const Node> nodes,
             SpillAnswers answers)
    : limit_(limit_bytes),
      file_(file),
      // Where pages of a file lie is the system's to say.
      nodes_(file.empty() ? nodes : std::span<const Node>()),
      answers_(std::move(answers)) {
  if (file_.empty()) return;
  descriptor_ = open(file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor_ < 0)
    fail(Errc::io, fmt::format("can't make the spill file '{}': {}; it must not exist yet", file_,
                               std::strerror(errno)));
  unlink(file_.c_str());  // its space is given back however the process ends
}

Spill::~Spill() {
  for (const auto& [buffer, piece] : owned_) munmap(buffer, piece.bytes);
  if (descriptor_ >= 0) close(descriptor_);
}

std::byte* Spill::ask_for_more(Kind kind) {
  ++questions_;
  if (answers_.to_refuse && answers_.to_refuse->contains(questions_)) {
    refusal_ = "the run that is repeated got no more";
    return nullptr;
  }
  std::byte* const buffer = map_more(kind);
  if (!buffer && answers_.refused) answers_.refused(questions_);
  return buffer;
}

std::byte* Spill::map_more(Kind kind) {
  const auto [bytes, node] = kind;
  off_t offset = 0;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (descriptor_ >= 0) {
    offset = static_cast<off_t>(file_bytes_);
    if (const int error = posix_fallocate(descriptor_, offset, static_cast<off_t>(bytes))) {
      refusal_ = fmt::format("the spill file '{}' can't grow beyond {}: {}", file_,
                             format_bytes(static_cast<double>(file_bytes_)), std::strerror(error));
      return nullptr;
    }
    flags = MAP_SHARED;
  }
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor_, offset);
  if (mapped == MAP_FAILED) {
    refusal_ = fmt::format("this computer gives no more host buffers than {}: {}",
                           format_bytes(static_cast<double>(used_)), std::strerror(errno));
    return nullptr;
  }
  auto* const buffer = static_cast<std::byte*>(mapped);
  if (node != any_node) prefer_node(buffer, bytes, node);
  owned_[buffer] = {bytes, file_bytes_, node};
  file_bytes_ += bytes;
  held_ += bytes;
  return buffer;
}

/// Gives the largest buffer that is kept back to the system; false if there is none.
bool Spill::unmap_kept() {
  if (free_.empty()) return false;
  const auto largest = std::prev(free_.end());
  const auto found = owned_.find(largest->second);
  const auto [bytes, offset, node] = found->second;
  munmap(largest->second, bytes);
  if (descriptor_ >= 0)
    fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(bytes));
  owned_.erase(found);
  free_.erase(largest);
  held_ -= bytes;
  return true;
}

std::byte* Spill::allocate(std::size_t bytes, int near) {
  bytes = rounded(bytes);
  if (bytes > room()) {
    const std::string limit = format_bytes(static_cast<double>(limit_));
    refusal_ =
        file_.empty()
            ? fmt::format(
                  "they need more than the {} of host buffers that may be used "
                  "(host_memory, spill)",
                  limit)
            : fmt::format("they need more than the {} that were free for the spill file '{}'",
                          limit, file_);
    return nullptr;
  }
  std::byte* buffer = nullptr;
  const Kind kind{bytes, nodes_.choose(bytes, near)};
  if (const auto found = free_.find(kind); found != free_.end()) {
    buffer = found->second;
    free_.erase(found);
  } else {
    while (held_ + bytes > limit_ && unmap_kept()) continue;
    while (!(buffer = ask_for_more(kind)) && unmap_kept()) continue;
  }
  if (!buffer) return nullptr;
  nodes_.take(kind.second, bytes);
  used_ += bytes;
  if (used_ > most_) most_ = used_;
  return buffer;
}

void Spill::deallocate(std::byte* buffer, std::size_t bytes) noexcept {
  bytes = rounded(bytes);
  used_ -= bytes;
  const int node = owned_.find(buffer)->second.node;
  nodes_.give_back(node, bytes);
  try {
    free_.emplace(Kind(bytes, node), buffer);
  } catch (...) {
    // Without a note of it the buffer stays mapped until the end.
  }
}

}  // namespace quadriga
