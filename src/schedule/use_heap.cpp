// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/use_heap.cpp: melding two heaps, and many in pairs.
#include "schedule/use_heap.h"

#include <quadriga/error.h>

#include <utility>
#include <vector>

#include "schedule/plan.h"

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
  b->heap.before = a;
  b->heap.next = a->heap.child;
  if (a->heap.child) a->heap.child->heap.before = b;
  a->heap.child = b;
  return a;
}

/// Melds siblings two by two from the left, then what came of it from the right.
PlannedAccess* meld_all(PlannedAccess* first) noexcept {
  PlannedAccess* pairs = nullptr;  // linked by `next`, the rightmost first
  while (first) {
    PlannedAccess* const a = first;
    PlannedAccess* const b = a->heap.next;
    first = b ? b->heap.next : nullptr;
    a->heap.next = a->heap.before = nullptr;
    if (b) b->heap.next = b->heap.before = nullptr;
    PlannedAccess* const pair = meld(a, b);
    pair->heap.next = pairs;
    pairs = pair;
  }
  PlannedAccess* root = nullptr;
  while (pairs) {
    PlannedAccess* const pair = std::exchange(pairs, pairs->heap.next);
    pair->heap.next = nullptr;
    root = meld(root, pair);
  }
  return root;
}

}  // namespace

void UseHeap::insert(PlannedAccess& access) noexcept {
  access.heap = {};
  first_ = meld(first_, &access);
}

void UseHeap::erase(PlannedAccess& access) noexcept {
  UseLinks& links = access.heap;
  PlannedAccess* const below = meld_all(links.child);
  if (&access == first_) {
    first_ = below;
  } else {
    PlannedAccess& before = *links.before;
    (before.heap.child == &access ? before.heap.child : before.heap.next) = links.next;
    if (links.next) links.next->heap.before = &before;
    first_ = meld(first_, below);
  }
  links = {};
}

std::size_t UseHeap::validate() const {
  std::size_t count = 0;
  std::vector<const PlannedAccess*> open;
  if (first_) open.push_back(first_);
  if (first_ && (first_->heap.next || first_->heap.before))
    fail(Errc::internal, "UseHeap: the first has siblings");
  while (!open.empty()) {
    const PlannedAccess* const parent = open.back();
    open.pop_back();
    ++count;
    const PlannedAccess* before = parent;
    for (const PlannedAccess* child = parent->heap.child; child; child = child->heap.next) {
      if (child->heap.before != before) fail(Errc::internal, "UseHeap: a link back is wrong");
      if (!comes_before(*parent, *child)) fail(Errc::internal, "UseHeap: a use before the first");
      before = child;
      open.push_back(child);
    }
  }
  return count;
}

}  // namespace quadriga
