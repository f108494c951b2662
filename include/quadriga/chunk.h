// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/chunk.h: one piece of a stream: named fields in the host's memory.
#pragma once

#include <quadriga/codelet.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga {

/// Which chunk it is, in the order of the source: its place there from 0, and if a stage made it of
/// another chunk its place among those, for each such stage.
struct ChunkId {
  std::uint64_t number = 0;
  std::vector<std::uint32_t> parts = {};

  friend auto operator<=>(const ChunkId&, const ChunkId&) = default;
  /// As "17", or "17.3" of a part.
  std::string text() const;
};

/// Where chunks of a stream have their memory from: such as is quick to copy to its devices.
class ChunkMemory {
 public:
  virtual ~ChunkMemory() = default;
  virtual std::shared_ptr<std::byte[]> take(std::size_t bytes) = 0;
};

/// A piece of a stream between its stages, with fields by name, each a column-major tile.
class Chunk {
 public:
  struct Field {
    std::string name;
    View view;
    std::shared_ptr<void> keeper;  ///< What keeps its memory.
  };

  Chunk();
  explicit Chunk(std::uint64_t number);
  explicit Chunk(ChunkId id);
  ~Chunk();
  Chunk(Chunk&&) noexcept;
  Chunk& operator=(Chunk&&) noexcept;

  /// Its place in the source, from 0; parts of a chunk have that of the chunk.
  std::uint64_t number() const noexcept { return id_.number; }
  const ChunkId& id() const noexcept { return id_; }
  std::span<const Field> fields() const noexcept;
  /// Null if there is none of that name.
  const View* find(std::string_view name) const noexcept;
  /// Errors: invalid_argument naming the field and those that there are.
  const View& operator[](std::string_view name) const;
  /// The elements of a field without gaps. Errors: as operator[]; invalid_argument if the size of
  /// T isn't that of its elements, or its columns lie apart.
  template <class T>
  std::span<T> values(std::string_view name) const {
    const View& view = plain(name, sizeof(T));
    return {view.as<T>(),
            static_cast<std::size_t>(view.rows * view.cols) * size_of(view.dtype) / sizeof(T)};
  }

  /// A field with memory of its own, whose content is unspecified. In a source it is memory that is
  /// quick to copy to the stream's devices, used again when the chunk has ended.
  View add(std::string name, std::int64_t rows, std::int64_t cols, DType dtype);
  /// A field whose memory lies elsewhere and is the stream's until the chunk ends; `keeper` is held
  /// until then. Errors: invalid_argument if there is one of that name.
  void lend(std::string name, const View& view, std::shared_ptr<void> keeper = {});
  void erase(std::string_view name);
  /// Of all its fields and its context.
  std::size_t bytes() const noexcept;

  std::shared_ptr<void> context;  ///< Whatever the source wants to go with it.
  std::size_t context_bytes = 0;  ///< Of that, which count as the chunk's.
  /// Set by a source: names of the stages that it passes; of the others it passes none. What is
  /// made of the chunk has the same.
  std::optional<std::vector<std::string>> stages;
  ChunkMemory* memory = nullptr;  ///< Of what is added; null: the program's heap.

 private:
  const View& plain(std::string_view name, std::size_t element) const;

  ChunkId id_;
  std::vector<Field> fields_;
};

}  // namespace quadriga
