// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/sorted_blocks.h: keys with a value each, in order, in blocks of memory one after the
// other.
//
// For orders that change all the time and are read from their front: a search looks at the first
// keys of the blocks, which lie side by side, and at one block; no key is looked up through a
// pointer. Most keys come last and leave first, which needs no search.
//
// Invariants
//   1. `firsts_[i]` is the first key of `blocks_[i]`, no block is empty, and keys ascend.
//   2. Blocks that became empty are kept in `spare_`: a steady state allocates nothing.
#pragma once

#include <quadriga/error.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

namespace quadriga {

/// Key and Value are small and trivially copied; no two keys are equal.
template <class Key, class Value>
class SortedBlocks {
  static constexpr std::uint32_t capacity = 64;
  struct Entry {
    Key key;
    Value value;
  };
  struct Block {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    Entry entries[capacity];
  };

 public:
  /// Forward; any change makes it invalid.
  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Value;
    using difference_type = std::ptrdiff_t;
    using pointer = const Value*;
    using reference = const Value&;
    const_iterator() = default;
    reference operator*() const { return entry().value; }
    const Key& key() const { return entry().key; }
    const_iterator& operator++() {
      if (++at_ != set_->blocks_[block_]->end) return *this;
      ++block_;
      at_ = block_ < set_->blocks_.size() ? set_->blocks_[block_]->begin : 0;
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator&) const = default;

   private:
    friend class SortedBlocks;
    const_iterator(const SortedBlocks* set, std::size_t block, std::uint32_t at)
        : set_(set), block_(block), at_(at) {}
    const Entry& entry() const { return set_->blocks_[block_]->entries[at_]; }
    const SortedBlocks* set_ = nullptr;
    std::size_t block_ = 0;
    std::uint32_t at_ = 0;
  };

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  const_iterator begin() const { return {this, 0, empty() ? 0 : blocks_.front()->begin}; }
  const_iterator end() const { return {this, blocks_.size(), 0}; }
  /// The first entry behind a key.
  const_iterator upper_bound(const Key& key) const {
    if (empty()) return end();
    const std::size_t block = block_of(key);
    const std::uint32_t at = place_in(*blocks_[block], key, true);
    if (at < blocks_[block]->end) return {this, block, at};
    return {this, block + 1, block + 1 < blocks_.size() ? blocks_[block + 1]->begin : 0};
  }
  /// The value of the last entry whose key isn't greater; there is one.
  const Value& last_until(const Key& key) const {
    const Block& block = *blocks_[block_of(key)];
    return block.entries[place_in(block, key, true) - 1].value;
  }
  bool contains(const Key& key) const {
    if (empty()) return false;
    const Block& block = *blocks_[block_of(key)];
    const std::uint32_t at = place_in(block, key, false);
    return at < block.end && block.entries[at].key == key;
  }

  /// The key isn't there yet.
  void insert(const Key& key, Value value) {
    ++size_;
    if (blocks_.empty()) add_block(0);
    std::size_t index = block_of(key);
    if (blocks_[index]->end - blocks_[index]->begin == capacity) index = split(index, key);
    Block& block = *blocks_[index];
    std::uint32_t at = place_in(block, key, true);
    if (block.end < capacity) {
      std::move_backward(block.entries + at, block.entries + block.end,
                         block.entries + block.end + 1);
      ++block.end;
    } else {
      std::move(block.entries + block.begin, block.entries + at, block.entries + block.begin - 1);
      --block.begin;
      --at;
    }
    block.entries[at] = {key, value};
    firsts_[index] = block.entries[block.begin].key;
  }

  /// Whether it was there.
  bool erase(const Key& key) {
    if (empty()) return false;
    const std::size_t index = block_of(key);
    Block& block = *blocks_[index];
    const std::uint32_t at = place_in(block, key, false);
    if (at == block.end || block.entries[at].key != key) return false;
    --size_;
    if (at - block.begin < block.end - at) {
      std::move_backward(block.entries + block.begin, block.entries + at, block.entries + at + 1);
      ++block.begin;
    } else {
      std::move(block.entries + at + 1, block.entries + block.end, block.entries + at);
      --block.end;
    }
    if (block.begin == block.end)
      remove_block(index);
    else
      firsts_[index] = block.entries[block.begin].key;
    return true;
  }

  /// Throws internal if an invariant is broken.
  void validate() const {
    std::size_t count = 0;
    const Key* before = nullptr;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const Block& block = *blocks_[i];
      if (block.begin >= block.end || block.end > capacity ||
          firsts_[i] != block.entries[block.begin].key)
        fail(Errc::internal, "SortedBlocks: a block is empty, or its first key is another");
      for (std::uint32_t at = block.begin; at < block.end; ++at) {
        if (before && !(*before < block.entries[at].key))
          fail(Errc::internal, "SortedBlocks: keys don't ascend");
        before = &block.entries[at].key;
        ++count;
      }
    }
    if (count != size_) fail(Errc::internal, "SortedBlocks: another number of entries");
  }

 private:
  /// The block that holds a key or would; there is one.
  std::size_t block_of(const Key& key) const {
    if (!(key < firsts_.back())) return firsts_.size() - 1;
    if (firsts_.size() == 1 || key < firsts_[1]) return 0;
    const auto next = std::upper_bound(firsts_.begin(), firsts_.end(), key);
    return static_cast<std::size_t>(next - firsts_.begin()) - 1;
  }
  /// The first place in a block whose key isn't less; `behind`: is greater.
  static std::uint32_t place_in(const Block& block, const Key& key, bool behind) {
    if (block.begin == block.end) return block.begin;
    const auto goes_on = [&](const Key& each) { return behind ? !(key < each) : each < key; };
    if (!goes_on(block.entries[block.begin].key)) return block.begin;
    if (goes_on(block.entries[block.end - 1].key)) return block.end;
    std::uint32_t low = block.begin, high = block.end - 1;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (goes_on(block.entries[middle].key))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  void add_block(std::size_t index) {
    std::unique_ptr<Block> block;
    if (spare_.empty()) {
      block = std::make_unique<Block>();
    } else {
      block = std::move(spare_.back());
      spare_.pop_back();
      block->begin = block->end = 0;
    }
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(index), std::move(block));
    firsts_.insert(firsts_.begin() + static_cast<std::ptrdiff_t>(index), Key{});
  }
  void remove_block(std::size_t index) {
    spare_.push_back(std::move(blocks_[index]));
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(index));
    firsts_.erase(firsts_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  /// Makes room in a full block; returns the one that the key goes to. Behind the last key a new
  /// block begins, so that orders which only grow fill theirs.
  std::size_t split(std::size_t index, const Key& key) {
    add_block(index + 1);
    Block& from = *blocks_[index];
    Block& to = *blocks_[index + 1];
    const bool is_last = index + 2 == blocks_.size() && from.entries[from.end - 1].key < key;
    const std::uint32_t kept = is_last ? capacity : capacity / 2;
    std::copy(from.entries + kept, from.entries + capacity, to.entries);
    to.end = capacity - kept;
    from.end = kept;
    firsts_[index + 1] = is_last ? key : to.entries[0].key;
    return is_last || !(key < firsts_[index + 1]) ? index + 1 : index;
  }

  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Key> firsts_;
  std::vector<std::unique_ptr<Block>> spare_;
  std::size_t size_ = 0;
};

}  // namespace quadriga
