// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/layout.cpp: layouts of blocks of layouts, and what they say of themselves.
#include "message/layout/layout.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>

#include "base/random.h"

namespace quadriga::message {
namespace {

// `length` copies of a layout, the first at `offset`.
struct Block {
  std::int64_t length = 0;
  std::int64_t offset = 0;
};

void check_count(std::string_view maker, std::string_view what, std::int64_t value) {
  if (value < 0)
    fail(Errc::invalid_argument,
         fmt::format("layout: {}'s {} is {}; expected at least 0", maker, what, value));
}

void check_lengths(std::string_view maker, std::size_t lengths, std::size_t displacements) {
  if (lengths != displacements)
    fail(Errc::invalid_argument, fmt::format("layout: {} got {} lengths and {} displacements",
                                             maker, lengths, displacements));
}

Canonical block_form(const Layout& of, const Block& block) {
  return moved(repeated(of.form(), block.length, of.extent()), block.offset);
}

// Lower and upper bounds of blocks, of which those without elements don't count.
class Bounds {
 public:
  void add(const Layout& of, const Block& block) {
    if (block.length == 0) return;
    any_ = true;
    const std::int64_t reach = checked_product(block.length - 1, of.extent());
    const std::int64_t begin = checked_sum(block.offset, of.lower());
    const std::int64_t end = checked_sum(block.offset, of.upper());
    low_ = std::min({low_, begin, checked_sum(begin, reach)});
    high_ = std::max({high_, end, checked_sum(end, reach)});
  }
  // An extent may be negative: that of a block whose layout was resized so.
  std::int64_t low() const noexcept { return any_ ? low_ : 0; }
  std::int64_t extent() const noexcept { return any_ ? high_ - low_ : 0; }

 private:
  bool any_ = false;
  std::int64_t low_ = INT64_MAX;
  std::int64_t high_ = INT64_MIN;
};

Layout of_blocks(std::span<const Block> blocks, const Layout& of) {
  std::vector<Canonical> forms;
  Bounds bounds;
  std::int64_t total = 0;
  for (const Block& block : blocks) {
    forms.push_back(block_form(of, block));
    bounds.add(of, block);
    total = checked_sum(total, block.length);
  }
  return Layout::from_parts(joined(forms),
                            of.elements().repeated(static_cast<std::uint64_t>(total)), bounds.low(),
                            bounds.extent());
}

std::string size_text(const Canonical& form) {
  if (form.leaf == Leaf::list) return fmt::format("a list of {} runs", form.leaf_runs());
  if (form.leaf == Leaf::run) return fmt::format("runs of {} B", form.block_bytes);
  const Taper& taper = form.taper;
  return fmt::format("{} runs {} B apart of {} to {} B", taper.rows, taper.offset_step,
                     taper.first_bytes, taper.length(taper.rows - 1));
}

}  // namespace

Layout::Layout() : Layout(from_parts({}, {}, 0, 0)) {}

Layout::Layout(ElementType type)
    : Layout(from_parts(run_form(0, static_cast<std::int64_t>(size_of(type))),
                        ElementSignature(type), 0, static_cast<std::int64_t>(size_of(type)))) {}

Layout Layout::from_parts(Canonical form, const ElementSignature& elements, std::int64_t lower,
                          std::int64_t extent) {
  auto parts = std::make_shared<Parts>();
  parts->bounds = form.bounds();
  checked_sum(parts->bounds.first, 0);
  checked_sum(parts->bounds.second, 0);
  checked_sum(lower, extent);
  parts->bytes = form.bytes();
  parts->form = std::move(form);
  parts->elements = elements;
  parts->lower = lower;
  parts->extent = extent;
  return Layout(std::shared_ptr<const Parts>(std::move(parts)));
}

std::int64_t Layout::bytes() const noexcept { return parts_->bytes; }
std::int64_t Layout::count() const noexcept {
  return static_cast<std::int64_t>(parts_->elements.count());
}
std::int64_t Layout::lower() const noexcept { return parts_->lower; }
std::int64_t Layout::upper() const noexcept { return parts_->lower + parts_->extent; }
std::int64_t Layout::extent() const noexcept { return parts_->extent; }
std::pair<std::int64_t, std::int64_t> Layout::bounds() const noexcept { return parts_->bounds; }
const ElementSignature& Layout::elements() const noexcept { return parts_->elements; }
const Canonical& Layout::form() const noexcept { return parts_->form; }

Layout Layout::contiguous(std::int64_t count, const Layout& of) {
  check_count("contiguous", "count", count);
  const Block block{count, 0};
  return of_blocks({&block, 1}, of);
}

Layout contiguous_layout(std::int64_t count, ElementType type) {
  struct Known {
    std::int64_t count = -1;
    ElementType type = ElementType::bytes;
    Layout layout;
  };
  static thread_local std::array<Known, 16> known;
  const auto mixed = static_cast<std::uint64_t>(count) * 7 + static_cast<std::uint64_t>(type);
  Known& each = known[mixed % known.size()];
  if (each.count != count || each.type != type)
    each = {count, type, Layout::contiguous(count, type)};
  return each.layout;
}

Layout Layout::vector(std::int64_t count, std::int64_t length, std::int64_t stride,
                      const Layout& of) {
  return vector_bytes(count, length, checked_product(stride, of.extent()), of);
}

Layout Layout::vector_bytes(std::int64_t count, std::int64_t length, std::int64_t stride_bytes,
                            const Layout& of) {
  check_count("vector", "count", count);
  check_count("vector", "length of a block", length);
  Bounds bounds;
  const std::int64_t reach = count ? checked_product(count - 1, stride_bytes) : 0;
  bounds.add(of, {count ? length : 0, 0});
  bounds.add(of, {count ? length : 0, reach});
  const Canonical form = repeated(block_form(of, {length, 0}), count, stride_bytes);
  const auto total = static_cast<std::uint64_t>(checked_product(count, length));
  return from_parts(form, of.elements().repeated(total), bounds.low(), bounds.extent());
}

Layout Layout::indexed(std::span<const std::int64_t> lengths,
                       std::span<const std::int64_t> displacements, const Layout& of) {
  std::vector<std::int64_t> in_bytes;
  for (const std::int64_t each : displacements)
    in_bytes.push_back(checked_product(each, of.extent()));
  return indexed_bytes(lengths, in_bytes, of);
}

Layout Layout::indexed_bytes(std::span<const std::int64_t> lengths,
                             std::span<const std::int64_t> displacements, const Layout& of) {
  check_lengths("indexed", lengths.size(), displacements.size());
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    check_count("indexed", "length of a block", lengths[i]);
    blocks.push_back({lengths[i], displacements[i]});
  }
  return of_blocks(blocks, of);
}

Layout Layout::structure(std::span<const std::int64_t> lengths,
                         std::span<const std::int64_t> displacements,
                         std::span<const Layout> fields) {
  check_lengths("structure", lengths.size(), displacements.size());
  check_lengths("structure", lengths.size(), fields.size());
  std::vector<Canonical> forms;
  Bounds bounds;
  ElementSignature elements;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    check_count("structure", "length of a field", lengths[i]);
    const Block block{lengths[i], displacements[i]};
    forms.push_back(block_form(fields[i], block));
    bounds.add(fields[i], block);
    elements =
        elements.followed_by(fields[i].elements().repeated(static_cast<std::uint64_t>(lengths[i])));
  }
  return from_parts(joined(forms), elements, bounds.low(), bounds.extent());
}

Layout Layout::resized(const Layout& of, std::int64_t lower, std::int64_t extent) {
  return from_parts(of.form(), of.elements(), checked_sum(lower, 0), checked_sum(extent, 0));
}

bool Layout::overlapping() const {
  signed char known = parts_->overlap.load(std::memory_order_relaxed);
  if (known < 0) {
    known = overlaps(form());
    parts_->overlap.store(known, std::memory_order_relaxed);
  }
  return known != 0;
}

void Layout::check_receives() const {
  if (overlapping())
    fail(Errc::invalid_argument,
         fmt::format("layout: elements of {} overlap; it can send, but not receive", text()));
}

void Layout::check_same_elements(const ElementSignature& other) const {
  if (elements() == other) return;
  const bool told = elements().text() != other.text();
  fail(
      Errc::invalid_argument,
      fmt::format("layout: one side has {}, the other {}{}; expected the same elements in the same "
                  "order",
                  elements().text(), other.text(), told ? "" : " in another order"));
}

std::string Layout::text() const {
  if (bytes() == 0) return "empty";
  std::string text;
  for (const Stride& stride : form().strides)
    text +=
        fmt::format("{}{} x {} B", text.empty() ? "strides " : ", ", stride.count, stride.bytes);
  const bool one_run = text.empty() && form().leaf == Leaf::run;
  text += text.empty() ? "" : " of ";
  text += one_run ? fmt::format("run of {} B", bytes()) : size_text(form());
  return text + ", " + elements().text();
}

std::uint64_t Layout::hash() const noexcept {
  const std::uint64_t place = mix(form().hash() ^ mix(elements().hash() ^ elements().count()));
  return mix(place ^ mix(static_cast<std::uint64_t>(lower())) ^
             static_cast<std::uint64_t>(extent()));
}

bool Layout::operator==(const Layout& other) const noexcept {
  return parts_ == other.parts_ || (elements() == other.elements() && lower() == other.lower() &&
                                    extent() == other.extent() && form() == other.form());
}

}  // namespace quadriga::message
