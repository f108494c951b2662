// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/row_source_test.cpp: matrices read range by range, and parts kept in a file.
#include <gtest/gtest.h>
#include <quadriga/sparse.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "sparse/row_reader.h"
#include "sparse/tile_memory.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse {
namespace {

using testing::OwnedCsr;
using testing::random_vector;

constexpr std::int64_t rows = 30'000;  // More than one range of the first pass.

/// Rows of a tridiagonal matrix, of which only those of the last call exist.
RowSource tridiagonal(OwnedCsr<double>& kept, std::vector<std::int64_t>& reads) {
  return {rows, DType::float64, [&](std::int64_t first, std::int64_t last) {
            reads.push_back(last - first);
            kept = {};
            kept.cols = rows;
            for (std::int64_t row = first; row < last; ++row) {
              for (std::int64_t column = row - 1; column <= row + 1; ++column)
                if (column >= 0 && column < rows) kept.add(column, column == row ? 4 : -1);
              kept.end_row();
            }
            return kept.view();
          }};
}

TEST(SparseRowSource, GivesWhatTheWholeMatrixGives) {
  OwnedCsr<double> kept, whole;
  std::vector<std::int64_t> reads;
  const RowSource source = tridiagonal(kept, reads);
  source.read(0, rows);
  whole = kept;
  reads.clear();
  Engine engine(EngineOptions{.devices = "emulated:3"});
  SolverOptions options;
  options.precondition = Precondition::jacobi;
  const Solver solver(engine, source, options);
  const Solver reference(engine, whole.view(), options);
  EXPECT_EQ(std::accumulate(reads.begin(), reads.end(), std::int64_t{0}), 3 * rows);
  EXPECT_EQ(solver.plan().first_rows, reference.plan().first_rows);
  const auto b = random_vector<double>(rows, 1);
  std::vector<double> x(rows), same(rows);
  EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
  reference.cg(b.data(), same.data());
  EXPECT_EQ(x, same);
}

TEST(SparseRowSource, RefusesOtherSizesThanAskedFor) {
  OwnedCsr<double> kept;
  std::vector<std::int64_t> reads;
  RowSource source = tridiagonal(kept, reads);
  const auto read = source.read;
  source.read = [read](std::int64_t first, std::int64_t last) { return read(first, last - 1); };
  EXPECT_THROW(RowReader{source}, Error);
  source.read = {};
  EXPECT_THROW(RowReader{source}, Error);
  source = tridiagonal(kept, reads);
  source.dtype = DType::float32;
  EXPECT_THROW(RowReader{source}, Error);
}

TEST(SparseTileMemory, MapsPagesOfAFileThatIsRemoved) {
  const std::string file =
      (std::filesystem::path(::testing::TempDir()) / "quadriga_tiles.bin").string();
  {
    TileMemory memory(file);
    EXPECT_FALSE(std::filesystem::exists(file));
    const StoredTile first = memory.allocate(10'000);
    std::byte* const place = first.get();
    StoredTile second = memory.allocate(10'000);
    std::fill_n(second.get(), 10'000, std::byte{1});
    EXPECT_NE(place, second.get());
    std::byte* const free = second.get();
    second.reset();
    EXPECT_EQ(memory.allocate(10'000).get(), free) << "what was given back is used again";
    EXPECT_EQ(memory.allocate(0).get(), nullptr);
  }
  std::ofstream(file) << "mine";
  EXPECT_THROW(TileMemory{file}, Error);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace quadriga::sparse
