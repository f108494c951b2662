// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/lent_memory.cpp: copies of what a source lends, or what tells that it has changed.
#include "pipeline/lent_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace quadriga {
namespace {

const std::byte* at(const View& view, std::size_t offset) { return view.as<std::byte>() + offset; }

/// The source may learn from a keeper's end that the memory is free: the user ends before it.
struct KeptLonger {
  KeptLonger(std::shared_ptr<void> given, std::shared_ptr<void> of_chunks)
      : keeper(std::move(given)), user(std::move(of_chunks)) {}
  std::shared_ptr<void> keeper;
  std::shared_ptr<void> user;
};

bool is_contiguous(const View& view) { return view.cols <= 1 || view.ld == view.rows; }

}  // namespace

ContentSample::ContentSample(const View& view) : bytes(bytes_of(view)) {
  if (bytes <= content.size()) {
    std::memcpy(content.data(), view.data, bytes);
    return;
  }
  for (std::size_t i = 0; i < blocks; ++i)
    std::memcpy(&content[i * block_bytes], at(view, begin(i)), block_bytes);
}

std::size_t ContentSample::begin(std::size_t block) const noexcept {
  return block * ((bytes - block_bytes) / (blocks - 1));
}

bool ContentSample::holds(const View& view) const {
  const std::size_t both = std::min(bytes, bytes_of(view));
  if (bytes <= content.size()) return std::memcmp(content.data(), view.data, both) == 0;
  for (std::size_t i = 0; i < blocks && begin(i) + block_bytes <= both; ++i)
    if (std::memcmp(&content[i * block_bytes], at(view, begin(i)), block_bytes) != 0) return false;
  return true;
}

void LentMemory::asked() {
  std::erase_if(known_, [](const auto& each) { return each.second.user.expired(); });
}

void LentMemory::filled(Chunk& chunk) {
  for (const Chunk::Field& field : chunk.fields()) {
    if (!field.is_lent || bytes_of(field.view) == 0) continue;
    if (lending_ == Lending::reused)
      copy(chunk, field);
    else if (is_contiguous(field.view) && std::ranges::count(changed_, field.name) == 0)
      compare(chunk, field);
  }
}

void LentMemory::copy(Chunk& chunk, const Chunk::Field& field) {
  const View& from = field.view;
  const std::size_t bytes = bytes_of(from);
  std::shared_ptr<std::byte[]> memory =
      chunk.memory ? chunk.memory->take(bytes) : std::shared_ptr<std::byte[]>(new std::byte[bytes]);
  const std::size_t element = size_of(from.dtype);
  const std::size_t column = static_cast<std::size_t>(from.rows) * element;
  for (std::int64_t c = 0; c < from.cols; ++c) {
    const auto before = static_cast<std::size_t>(c);
    std::memcpy(&memory[before * column],
                at(from, before * static_cast<std::size_t>(from.ld) * element), column);
  }
  View view = from;
  view.data = memory.get();
  view.ld = std::max<std::int64_t>(from.rows, 1);
  chunk.replace(field.name, view, std::move(memory));
}

void LentMemory::compare(Chunk& chunk, const Chunk::Field& field) {
  const auto found = known_.find(field.view.data);
  std::shared_ptr<void> user;
  if (found != known_.end()) {
    const Known& known = found->second;
    user = known.user.lock();
    if (user && !known.sample.holds(field.view))
      fail(Errc::invalid_argument,
           "field '" + field.name + "' of chunk " + chunk.id().text() +
               " lies in memory of field '" + known.field + "' of chunk " + known.chunk +
               ", which was in progress when its source was asked, and its content has changed. "
               "Expected memory of its own for each chunk (Chunk::add()); or Lending::reused for "
               "that source or flat_map, which copies what is lent, or Lending::unchanging if "
               "nobody writes to it");
  }
  // All chunks that have the memory share what tells that they do.
  if (!user) user = std::make_shared<char>();
  known_.insert_or_assign(field.view.data,
                          Known{user, field.name, chunk.id().text(), ContentSample(field.view)});
  std::shared_ptr<void> kept = user;
  const bool has_owner = field.keeper.use_count() > 0;  // which a null pointer may have, too
  if (has_owner) kept = std::make_shared<KeptLonger>(field.keeper, user);
  // Bodies find the pointer that the source gave.
  chunk.replace(field.name, field.view, std::shared_ptr<void>(kept, field.keeper.get()));
}

}  // namespace quadriga
