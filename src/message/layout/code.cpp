// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/code.cpp: numbers side by side, and a reader that believes none of them.
#include "message/layout/code.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstring>

namespace quadriga::message {
namespace {

constexpr std::int64_t version = 1;
constexpr std::int64_t most_bytes = std::int64_t{1} << 62;
constexpr int hash_bits = 61;

class Writer {
 public:
  void add(std::int64_t number) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof number);
    std::memcpy(bytes_.data() + at, &number, sizeof number);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

[[noreturn]] void refuse(std::string_view what, std::int64_t found, std::int64_t least,
                         std::int64_t most) {
  fail(Errc::invalid_argument,
       fmt::format("encoded layout: {} is {}; expected {} to {}", what, found, least, most));
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::int64_t number(std::string_view what, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    if (bytes_.size() < sizeof value)
      fail(Errc::invalid_argument, fmt::format("encoded layout: it ends before {}", what));
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    if (value < least || value > most) refuse(what, value, least, most);
    return value;
  }
  std::int64_t offset(std::string_view what) {
    return number(what, 1 - most_bytes, most_bytes - 1);
  }
  std::int64_t left() const noexcept { return static_cast<std::int64_t>(bytes_.size()); }

 private:
  std::span<const std::byte> bytes_;
};

// What stands before strides and leaf.
struct Head {
  Leaf leaf = Leaf::run;
  std::int64_t strides = 0;
  bool uniform = false;
  ElementType type = ElementType::bytes;
  std::int64_t count = 0;
  std::int64_t hash = 0;
  std::int64_t lower = 0;
  std::int64_t extent = 0;
  std::int64_t origin = 0;
};

// The small numbers in one: version, leaf, strides, uniform, type, each of 8 bits.
std::int64_t small_numbers(const Layout& layout) {
  const Canonical& form = layout.form();
  return version | static_cast<std::int64_t>(form.leaf) << 8 | std::ssize(form.strides) << 16 |
         static_cast<std::int64_t>(layout.elements().uniform()) << 24 |
         static_cast<std::int64_t>(layout.elements().type()) << 32;
}

std::int64_t field(std::int64_t small, int shift, std::string_view what, std::int64_t least,
                   std::int64_t most) {
  const std::int64_t value = (small >> shift) & 0xff;
  if (value < least || value > most) refuse(what, value, least, most);
  return value;
}

Head read_head(Reader& reader) {
  Head head;
  const std::int64_t small = reader.number("its head", 0, (std::int64_t{1} << 40) - 1);
  field(small, 0, "the version", version, version);
  head.leaf = static_cast<Leaf>(field(small, 8, "the kind of leaf", 0, 2));
  head.strides = field(small, 16, "the number of strides", 0, most_strides);
  head.uniform = field(small, 24, "whether elements are alike", 0, 1) != 0;
  head.type =
      static_cast<ElementType>(field(small, 32, "the type of elements", 0, element_types - 1));
  head.count = reader.number("the number of elements", 0, most_bytes);
  head.hash = reader.number("the hash of elements", 0, (std::int64_t{1} << hash_bits) - 2);
  head.lower = reader.offset("the lower bound");
  head.extent = reader.offset("the extent");
  head.origin = reader.offset("the origin");
  return head;
}

Canonical read_taper(Reader& reader, std::int64_t origin) {
  Taper taper;
  taper.rows = reader.number("the number of changing runs", 2, most_bytes);
  taper.offset_step = reader.offset("the distance of changing runs");
  taper.first_bytes = reader.number("the length of the first changing run", 1, most_bytes);
  taper.bytes_step = reader.offset("the change of length");
  const std::int64_t last =
      checked_sum(taper.first_bytes, checked_product(taper.rows - 1, taper.bytes_step));
  if (last < 1) refuse("the length of the last changing run", last, 1, most_bytes);
  // Such a form isn't canonical, and listing its runs could take all memory.
  if (taper.bytes_step == 0 || rows_touch(taper))
    fail(Errc::invalid_argument, "encoded layout: changing runs that don't change, or touch");
  return taper_form(origin, taper);
}

Canonical read_list(Reader& reader, std::int64_t origin) {
  const std::int64_t most = std::min(most_listed_runs, reader.left() / 16);
  const std::int64_t count = reader.number("the number of runs", 2, most);
  std::vector<ByteRun> runs;
  runs.reserve(static_cast<std::size_t>(count));
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t offset = reader.offset("a run's offset");
    const std::int64_t bytes = reader.number("a run's length", 1, most_bytes);
    runs.push_back({checked_sum(origin, offset), bytes});
    checked_sum(runs.back().offset, bytes);
    total = checked_sum(total, bytes);
  }
  return form_of(std::move(runs));
}

Canonical read_form(Reader& reader, const Head& head) {
  std::vector<Stride> strides;
  for (std::int64_t i = 0; i < head.strides; ++i) {
    const std::int64_t count = reader.number("a stride's count", 2, most_bytes);
    strides.push_back({count, reader.offset("a stride")});
  }
  Canonical form;
  if (head.leaf == Leaf::run)
    form = run_form(head.origin, reader.number("the length of a run", 0, most_bytes));
  else if (head.leaf == Leaf::taper)
    form = read_taper(reader, head.origin);
  else
    form = read_list(reader, head.origin);
  std::ranges::reverse(strides);
  for (const Stride& stride : strides) form = repeated(form, stride.count, stride.bytes);
  return form;
}

void check_elements(const Head& head, std::int64_t bytes) {
  const auto hash = static_cast<std::uint64_t>(head.hash);
  const auto count = static_cast<std::uint64_t>(head.count);
  bool fits = head.count <= bytes && (head.count == 0) == (bytes == 0);
  if (head.uniform) {
    const ElementSignature alike = ElementSignature(head.type).repeated(count);
    fits = fits && alike.hash() == hash &&
           head.count == bytes / static_cast<std::int64_t>(size_of(head.type)) &&
           bytes % static_cast<std::int64_t>(size_of(head.type)) == 0;
  }
  if (!fits)
    fail(Errc::invalid_argument,
         fmt::format("encoded layout: {} elements don't fit its {} bytes", head.count, bytes));
}

Layout read_layout(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const Head head = read_head(reader);
  const Canonical form = read_form(reader, head);
  if (reader.left() != 0)
    fail(Errc::invalid_argument,
         fmt::format("encoded layout: {} bytes beyond its end", reader.left()));
  check_elements(head, form.bytes());
  const ElementSignature elements(static_cast<std::uint64_t>(head.count),
                                  static_cast<std::uint64_t>(head.hash), head.uniform, head.type);
  return Layout::from_parts(form, elements, head.lower, head.extent);
}

}  // namespace

std::vector<std::byte> encoded(const Layout& layout) {
  const Canonical& form = layout.form();
  Writer writer;
  writer.add(small_numbers(layout));
  writer.add(layout.count());
  writer.add(static_cast<std::int64_t>(layout.elements().hash()));
  for (const std::int64_t number : {layout.lower(), layout.extent(), form.origin})
    writer.add(number);
  for (const Stride& stride : form.strides) {
    writer.add(stride.count);
    writer.add(stride.bytes);
  }
  const Taper& taper = form.taper;
  if (form.leaf == Leaf::run) writer.add(form.block_bytes);
  if (form.leaf == Leaf::taper) {
    for (const std::int64_t number :
         {taper.rows, taper.offset_step, taper.first_bytes, taper.bytes_step})
      writer.add(number);
  }
  if (form.leaf == Leaf::list) writer.add(form.leaf_runs());
  for (std::int64_t i = 0; form.leaf == Leaf::list && i < form.leaf_runs(); ++i) {
    writer.add(form.run(i).offset);
    writer.add(form.run(i).bytes);
  }
  return writer.take();
}

Layout decoded(std::span<const std::byte> bytes) {
  try {
    const Layout layout = read_layout(bytes);
    if (!std::ranges::equal(encoded(layout), bytes))
      fail(Errc::invalid_argument, "encoded layout: it isn't the canonical form of its elements");
    return layout;
  } catch (const Error& error) {
    // Numbers that are too large are no request of ours, but bytes that are wrong.
    if (error.code() != Errc::too_large) throw;
    fail(Errc::invalid_argument, fmt::format("encoded layout: {}", error.what()));
  }
}

}  // namespace quadriga::message
