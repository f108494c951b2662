// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/chunk.h: one piece of a stream: named fields in the host's memory.
#pragma once

#include <quadriga/codelet.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga {

/// Identifies a chunk: its position in the source, from 0, and for each stage that made it from
/// another chunk its position among the parts.
struct ChunkId {
  std::uint64_t number = 0;
  std::vector<std::uint32_t> parts = {};

  friend auto operator<=>(const ChunkId&, const ChunkId&) = default;
  /// Such as "17", or "17.3" for a part.
  std::string text() const;
};

/// Allocates memory for a stream's chunks that copies quickly to its devices.
class ChunkMemory {
 public:
  virtual ~ChunkMemory() = default;
  virtual std::shared_ptr<std::byte[]> take(std::size_t bytes) = 0;
};

/// What a source, or that of a flat_map(), does with memory that it has lent to chunks
/// (Chunk::lend()) which haven't ended.
enum class Lending : std::uint8_t {
  /// It doesn't write to it; what comes again meanwhile from the same address is compared with what
  /// it was, by a sample of 1 KiB, and an error if it differs. A change elsewhere isn't noticed.
  fresh,
  reused,      ///< It may fill it again: chunks get copies before the source is asked again.
  unchanging,  ///< Nobody writes to it; nothing is compared.
};

/// A piece of a stream between its stages, with fields by name, each a column-major tile.
class Chunk {
 public:
  struct Field {
    std::string name;
    View view;
    std::shared_ptr<void> keeper;  ///< What keeps its memory.
    bool is_lent = false;          ///< By lend().
  };

  Chunk();
  explicit Chunk(std::uint64_t number);
  explicit Chunk(ChunkId id);
  ~Chunk();
  Chunk(Chunk&&) noexcept;
  Chunk& operator=(Chunk&&) noexcept;

  /// Its position in the source, from 0; parts keep their chunk's number.
  std::uint64_t number() const noexcept { return id_.number; }
  const ChunkId& id() const noexcept { return id_; }
  std::span<const Field> fields() const noexcept;
  /// Null if no field has that name.
  const View* find(std::string_view name) const noexcept;
  /// Errors: invalid_argument naming the field and the existing ones.
  const View& operator[](std::string_view name) const;
  /// The elements of a field without gaps. Errors: as operator[]; invalid_argument if T's size
  /// differs from that of the elements, or the columns aren't contiguous.
  template <class T>
  std::span<T> values(std::string_view name) const {
    const View& view = plain(name, sizeof(T));
    return {view.as<T>(),
            static_cast<std::size_t>(view.rows * view.cols) * size_of(view.dtype) / sizeof(T)};
  }

  /// Adds a field with its own memory, whose content is unspecified. In a source this memory copies
  /// quickly to the stream's devices, and is reused when the chunk has ended.
  View add(std::string name, std::int64_t rows, std::int64_t cols, DType dtype);
  /// Adds a field in existing memory, which belongs to the stream until the chunk ends: nobody
  /// writes to it, see Lending. `keeper` is held until then. Errors: invalid_argument if a field
  /// has that name.
  void lend(std::string name, const View& view, std::shared_ptr<void> keeper = {});
  /// Puts other memory in the place of a field's. Errors: as operator[].
  void replace(std::string_view name, const View& view, std::shared_ptr<void> keeper = {});
  /// Keeps the first rows of a field of one column, such as what a file's last read has filled.
  /// Errors: as operator[]; invalid_argument if it has several columns, or fewer rows.
  void truncate(std::string_view name, std::int64_t rows);
  void erase(std::string_view name);
  /// Bytes of all its fields and its context.
  std::size_t bytes() const noexcept;

  std::shared_ptr<void> context;  ///< Any object that the source attaches.
  std::size_t context_bytes = 0;  ///< Bytes of the context, which count as the chunk's.
  /// Set by a source: names of the stages that the chunk passes through; it skips all others. Its
  /// parts inherit them.
  std::optional<std::vector<std::string>> stages;
  ChunkMemory* memory = nullptr;  ///< Allocates added fields; null: the program's heap.

 private:
  const View& plain(std::string_view name, std::size_t element) const;

  ChunkId id_;
  std::vector<Field> fields_;
};

/// A source that gives any chunk by its number, such as a file with an index, and knows the sizes
/// of all of them. Chunks are read as the order takes them, so a few that are there (look_ahead) do
/// as well as all; in the source's order where results, a stage or a flat_map need it.
struct IndexedSource {
  /// Fills the chunk chunk.number(). Called by one thread at a time, when there is room.
  std::function<bool(Chunk& chunk)> read;
  /// By number, in any unit: only which is larger counts. The run takes a chunk's memory and load
  /// from its content.
  std::vector<double> sizes;
};

}  // namespace quadriga
