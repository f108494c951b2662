// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/chunk.cpp: the fields of a chunk.
#include <quadriga/chunk.h>
#include <quadriga/error.h>

#include <algorithm>
#include <utility>

namespace quadriga {
namespace {

void require_sizes(const std::string& name, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  if (rows < 0 || cols < 0 || ld < rows)
    fail(Errc::invalid_argument, "field '" + name + "' has " + std::to_string(rows) + " rows, " +
                                     std::to_string(cols) + " columns and ld " +
                                     std::to_string(ld) +
                                     "; expected sizes of 0 or more, and ld of at least the rows");
}

}  // namespace

std::string ChunkId::text() const {
  std::string text = std::to_string(number);
  for (const std::uint32_t part : parts) text.append(1, '.').append(std::to_string(part));
  return text;
}

Chunk::Chunk() = default;
Chunk::Chunk(std::uint64_t number) : id_{number} {}
Chunk::Chunk(ChunkId id) : id_(std::move(id)) {}
Chunk::~Chunk() = default;
Chunk::Chunk(Chunk&&) noexcept = default;
Chunk& Chunk::operator=(Chunk&&) noexcept = default;

std::span<const Chunk::Field> Chunk::fields() const noexcept { return fields_; }

const View* Chunk::find(std::string_view name) const noexcept {
  for (const Field& each : fields_)
    if (each.name == name) return &each.view;
  return nullptr;
}

const View& Chunk::operator[](std::string_view name) const {
  if (const View* const found = find(name)) return *found;
  std::string known;
  for (const Field& each : fields_) known += (known.empty() ? "'" : ", '") + each.name + "'";
  fail(Errc::invalid_argument, "chunk " + id_.text() + " has no field '" + std::string(name) +
                                   "'; it has " + (known.empty() ? "none" : known));
}

const View& Chunk::plain(std::string_view name, std::size_t element) const {
  const View& view = (*this)[name];
  const std::size_t own = size_of(view.dtype);
  const bool fits = view.dtype == DType::bytes ? bytes_of(view) % element == 0 : own == element;
  if (!fits)
    fail(Errc::invalid_argument, "field '" + std::string(name) + "' has elements of " +
                                     std::to_string(own) + " bytes; expected " +
                                     std::to_string(element) + ", those of the type asked for");
  if (view.cols > 1 && view.ld != view.rows)
    fail(Errc::invalid_argument,
         "field '" + std::string(name) + "' has columns that lie apart; use its view");
  return view;
}

View Chunk::add(std::string name, std::int64_t rows, std::int64_t cols, DType dtype) {
  require_sizes(name, rows, cols, std::max<std::int64_t>(rows, 0));
  View view{nullptr, rows, cols, std::max<std::int64_t>(rows, 1), dtype};
  const std::size_t size = std::max<std::size_t>(bytes_of(view), 1);
  std::shared_ptr<std::byte[]> keeper =
      memory ? memory->take(size) : std::shared_ptr<std::byte[]>(new std::byte[size]);
  view.data = keeper.get();
  lend(std::move(name), view, std::move(keeper));
  fields_.back().is_lent = false;
  return view;
}

void Chunk::replace(std::string_view name, const View& view, std::shared_ptr<void> keeper) {
  static_cast<void>((*this)[name]);
  require_sizes(std::string(name), view.rows, view.cols, view.ld);
  Field& field = *std::ranges::find(fields_, name, &Field::name);
  field.view = view;
  field.keeper = std::move(keeper);
}

void Chunk::lend(std::string name, const View& view, std::shared_ptr<void> keeper) {
  if (find(name))
    fail(Errc::invalid_argument, "chunk " + id_.text() + " has a field '" + name + "' already");
  require_sizes(name, view.rows, view.cols, view.ld);
  fields_.push_back({std::move(name), view, std::move(keeper), true});
}

void Chunk::truncate(std::string_view name, std::int64_t rows) {
  View view = (*this)[name];
  if (view.cols != 1 || rows < 0 || rows > view.rows)
    fail(Errc::invalid_argument,
         "field '" + std::string(name) + "' has " + std::to_string(view.rows) + " rows and " +
             std::to_string(view.cols) + " columns; truncate() to " + std::to_string(rows) +
             " rows expects one column, and at least as many");
  std::ranges::find(fields_, name, &Field::name)->view.rows = rows;
}

void Chunk::erase(std::string_view name) {
  std::erase_if(fields_, [&](const Field& each) { return each.name == name; });
}

std::size_t Chunk::bytes() const noexcept {
  std::size_t sum = context_bytes;
  for (const Field& each : fields_) sum += bytes_of(each.view);
  return sum;
}

}  // namespace quadriga
