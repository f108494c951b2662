// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/use_order.cpp: the list; melding two heaps, and many in pairs.
#include "schedule/use_order.h"

#include <quadriga/error.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/planned_task.h"

namespace quadriga {
namespace {

/// Accesses of one task lie side by side.
bool comes_before(const PlannedAccess& a, const PlannedAccess& b) noexcept {
  return a.position != b.position ? a.position < b.position : &a < &b;
}

/// Two roots, of which one becomes the first child of the other: the root.
PlannedAccess* meld(PlannedAccess* a, PlannedAccess* b) noexcept {
  if (!a) return b;
  if (!b) return a;
  if (comes_before(*b, *a)) std::swap(a, b);
  b->links.before = a;
  b->links.next = a->links.child;
  if (a->links.child) a->links.child->links.before = b;
  a->links.child = b;
  return a;
}

/// Melds siblings two by two from the left, then what came of it from the right.
PlannedAccess* meld_all(PlannedAccess* first) noexcept {
  PlannedAccess* pairs = nullptr;  // linked by `next`, the rightmost first
  while (first) {
    PlannedAccess* const a = first;
    PlannedAccess* const b = a->links.next;
    first = b ? b->links.next : nullptr;
    a->links.next = a->links.before = nullptr;
    if (b) b->links.next = b->links.before = nullptr;
    PlannedAccess* const pair = meld(a, b);
    pair->links.next = pairs;
    pairs = pair;
  }
  PlannedAccess* root = nullptr;
  while (pairs) {
    PlannedAccess* const pair = std::exchange(pairs, pairs->links.next);
    pair->links.next = nullptr;
    root = meld(root, pair);
  }
  return root;
}

/// What comes after a use of the heap and isn't behind it; null at the end.
const PlannedAccess* next_beside(const PlannedAccess* use) noexcept {
  while (use && !use->links.next) {
    // Back over its siblings to the parent.
    const PlannedAccess* before = use->links.before;
    while (before && before->links.child != use) {
      use = before;
      before = use->links.before;
    }
    use = before;
  }
  return use ? use->links.next : nullptr;
}

/// What is behind a use that is far enough needn't be looked at.
std::uint64_t next_in_heap(const PlannedAccess* use, std::uint64_t position) noexcept {
  std::uint64_t next = UINT64_MAX;
  while (use) {
    const bool is_behind = use->position > position;
    if (is_behind) next = std::min(next, use->position);
    use = !is_behind && use->links.child ? use->links.child : next_beside(use);
  }
  return next;
}

}  // namespace

PlannedAccess* UseOrder::first() const noexcept {
  if (!head_ || !heap_) return head_ ? head_ : heap_;
  return comes_before(*heap_, *head_) ? heap_ : head_;
}

std::uint64_t UseOrder::next_after(std::uint64_t position) const noexcept {
  return next_from(head_, position);
}

std::uint64_t UseOrder::next_behind(const PlannedAccess& access) const noexcept {
  return next_from(access.links.in_heap ? head_ : &access, access.position);
}

std::uint64_t UseOrder::next_from(const PlannedAccess* use, std::uint64_t position) const noexcept {
  while (use && use->position <= position) use = use->links.next;
  const std::uint64_t listed = use ? use->position : UINT64_MAX;
  return std::min(listed, next_in_heap(heap_, position));
}

void UseOrder::insert(PlannedAccess& access) noexcept {
  constexpr int most_steps = 8;
  access.links = {};
  // Most come last. Of the one before only the link is written: it is probably out of the caches.
  if (!tail_ || last_position_ < access.position) {
    access.links.before = tail_;
    (tail_ ? tail_->links.next : head_) = &access;
    tail_ = &access;
    last_position_ = access.position;
    return;
  }
  PlannedAccess* before = tail_;
  int steps = 0;
  while (before && comes_before(access, *before)) {
    if (++steps > most_steps) {
      access.links.in_heap = true;
      heap_ = meld(heap_, &access);
      return;
    }
    before = before->links.before;
  }
  access.links.before = before;
  access.links.next = before ? before->links.next : head_;
  (before ? before->links.next : head_) = &access;
  (access.links.next ? access.links.next->links.before : tail_) = &access;
  last_position_ = tail_->position;
}

void UseOrder::erase(PlannedAccess& access) noexcept {
  UseLinks& links = access.links;
  if (!links.in_heap) {
    (links.before ? links.before->links.next : head_) = links.next;
    if (links.next) {
      links.next->links.before = links.before;
      __builtin_prefetch(links.next);  // who comes first now is asked for soon
    } else {
      tail_ = links.before;
      if (tail_) last_position_ = tail_->position;
    }
  } else if (PlannedAccess* const below = meld_all(links.child); &access == heap_) {
    heap_ = below;
  } else {
    PlannedAccess& before = *links.before;
    (before.links.child == &access ? before.links.child : before.links.next) = links.next;
    if (links.next) links.next->links.before = &before;
    heap_ = meld(heap_, below);
  }
  links = {};
}

std::size_t UseOrder::validate() const { return validate_list() + validate_heap(); }

std::size_t UseOrder::validate_list() const {
  std::size_t count = 0;
  const PlannedAccess* before = nullptr;
  for (const PlannedAccess* use = head_; use; use = use->links.next, ++count) {
    if (use->links.before != before || use->links.in_heap)
      fail(Errc::internal, "UseOrder: a link of the list is wrong");
    if (before && !comes_before(*before, *use))
      fail(Errc::internal, "UseOrder: the list doesn't ascend");
    before = use;
  }
  if (tail_ != before || (tail_ && last_position_ != tail_->position))
    fail(Errc::internal, "UseOrder: the list ends elsewhere");
  return count;
}

std::size_t UseOrder::validate_heap() const {
  std::size_t count = 0;
  std::vector<const PlannedAccess*> open;
  if (heap_) open.push_back(heap_);
  if (heap_ && (heap_->links.next || heap_->links.before))
    fail(Errc::internal, "UseOrder: the heap's first has siblings");
  while (!open.empty()) {
    const PlannedAccess* const parent = open.back();
    open.pop_back();
    ++count;
    const PlannedAccess* before = parent;
    for (const PlannedAccess* child = parent->links.child; child; child = child->links.next) {
      if (child->links.before != before || !child->links.in_heap)
        fail(Errc::internal, "UseOrder: a link of the heap is wrong");
      if (!comes_before(*parent, *child))
        fail(Errc::internal, "UseOrder: a use comes before its parent");
      before = child;
      open.push_back(child);
    }
  }
  return count;
}

}  // namespace quadriga
