// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/row_pieces_test.cpp: parts that several threads pack are those of one.
#include <gtest/gtest.h>

#include <quadriga/error.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/config.h"
#include "sanitized.h"
#include "sparse/content.h"
#include "sparse/pack.h"
#include "sparse/partition.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

/// All at once, as far as there are threads.
void run_at_once(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < count; at = next++) work(at);
    });
  for (std::thread& each : threads) each.join();
}

struct Packed {
  Halo halo;
  std::vector<std::byte> tile;
  std::size_t pieces = 0;
  bool narrow = false;
};

template <class T>
Packed packed(const OwnedCsr<T, std::int64_t>& a, IndexRange rows, const Storage& storage,
              const RunAll& run) {
  Packed made;
  made.halo = find_halo(a.view(), rows, rows, {storage.block_rows, storage.dense_rows}, run);
  const std::vector<std::int64_t> sends{rows.first, rows.last - 1};
  const PartRows part{rows.first, rows.last, &made.halo, sends, rows};
  RowPieces pieces{run};
  const PartShape shape = shape_of(a.view(), part, storage, pieces);
  made.pieces = pieces.all.size();
  made.narrow = shape.narrow;
  made.tile.resize(static_cast<std::size_t>(shape.bytes), std::byte{0x5a});
  SolverOptions options;
  options.precondition =
      storage.inverse_rows > 1 ? Precondition::block_jacobi : Precondition::jacobi;
  pack(a.view(), part, shape, options, pieces, made.tile.data());
  return made;
}

template <class T>
void expect_the_part_of_one_thread(const OwnedCsr<T, std::int64_t>& a, const Storage& storage) {
  const std::int64_t middle = a.rows / 2 / storage.block_rows * storage.block_rows;
  for (const IndexRange rows : {IndexRange{0, a.rows}, {0, middle}, {middle, a.rows}}) {
    const Packed alone = packed(a, rows, storage, {});
    const Packed at_once = packed(a, rows, storage, run_at_once);
    EXPECT_EQ(alone.pieces, 1);
    EXPECT_GT(at_once.pieces, 1);
    EXPECT_EQ(alone.halo.columns, at_once.halo.columns);
    EXPECT_EQ(alone.halo.border, at_once.halo.border);
    EXPECT_EQ(alone.narrow, at_once.narrow);
    EXPECT_EQ(alone.tile, at_once.tile);
  }
}

TEST(RowPieces, MakeThePartOfOneThread) {
  const auto grid = grid_matrix<double>({35, 33, 31});
  const auto nodes = grid_matrix<std::complex<float>>({36, 31, 30, 27});
  for (const bool may_narrow : {false, true})
    for (const std::int64_t height : {1, 8, 32}) {
      if (is_sanitized && height != 8) continue;
      SCOPED_TRACE(height);
      expect_the_part_of_one_thread(grid, {Format::sell, 1, 512, height, 1, may_narrow});
      expect_the_part_of_one_thread(nodes, {Format::blocks, 3, 768, height, 3, may_narrow});
    }
  expect_the_part_of_one_thread(grid, {Format::csr, 1, 256, 32, 1, true});
}

TEST(RowPieces, AreForSeveralThreadsWhereNoCoreComputes) {
  if (computing_cores() < 2) GTEST_SKIP() << "one core";
  Engine engine({"emulated:1"});
  std::atomic<int> came{0};
  run_on_host(engine, 2, [&](std::size_t) {
    ++came;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
    while (came < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(came, 2) << "one after the other";
  });
  std::atomic<int> ran{0};
  EXPECT_THROW(run_on_host(engine, 1000,
                           [&](std::size_t i) {
                             ++ran;
                             if (i == 3) throw Error(Errc::io, "no such file");
                           }),
               Error);
  EXPECT_GE(ran, 4);
}

TEST(RowPieces, AreWholeBlocksOfAllRows) {
  for (const std::int64_t rows : {1, 511, 512, 513, 100'000}) {
    RowPieces pieces{run_at_once};
    pieces.cut({7, 7 + rows}, 512, rows * 100);
    std::int64_t next = 7;
    for (const RowPiece& each : pieces.all) {
      EXPECT_EQ(each.rows.first, next);
      EXPECT_EQ((each.rows.first - 7) % 512, 0);
      EXPECT_GT(each.rows.last, each.rows.first);
      next = each.rows.last;
    }
    EXPECT_EQ(next, 7 + rows);
  }
}

}  // namespace
}  // namespace quadriga::sparse::testing
