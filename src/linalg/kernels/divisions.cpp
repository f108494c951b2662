// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/divisions.cpp: fine tasks of products, rank updates, solves and Cholesky.
#include "linalg/kernels/divisions.h"

#include "linalg/kernels/codelets.h"

#include <algorithm>
#include <vector>

namespace quadriga::kernels {
namespace {

struct Range {
  std::int64_t first;
  std::int64_t count;
};

std::vector<Range> parts_of(std::int64_t length) {
  const std::int64_t most = fine_length(length);
  std::vector<Range> parts;
  for (std::int64_t first = 0; first < length; first += most)
    parts.push_back({first, std::min(most, length - first)});
  return parts;
}

View rows_of(const View& view, Range rows) {
  return part_of(view, rows.first, 0, rows.count, view.cols);
}
View columns_of(const View& view, Range columns) {
  return part_of(view, 0, columns.first, view.rows, columns.count);
}
View block_of(const View& view, Range rows, Range columns) {
  return part_of(view, rows.first, columns.first, rows.count, columns.count);
}

/// The rows of op(view).
View rows_of(const View& view, Op op, Range rows) {
  return op == Op::none ? rows_of(view, rows) : columns_of(view, rows);
}

/// `adjoint`: the op that makes the right factor of the left one.
void divide_rank_update(const Arguments& arguments, Division& division, const Codelet& diagonal,
                        Coefficient alpha, Op adjoint) {
  auto params = arguments.param<SyrkParams>();
  const View& a = arguments.operands[0];
  const View& c = arguments.operands[1];
  const std::vector<Range> parts = parts_of(c.rows);
  if (!params.fine || parts.size() < 2) return;
  params.fine = false;
  const bool plain = params.op == Op::none;
  const GemmParams beside{alpha, params.beta, params.op, plain ? adjoint : Op::none};
  const DType type = c.dtype;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const View left = rows_of(a, params.op, parts[i]);
    division.add(diagonal, {left, block_of(c, parts[i], parts[i])}, params);
    for (std::size_t j = 0; j < parts.size(); ++j)
      if (params.uplo == Uplo::lower ? j < i : j > i)
        division.add(gemm_codelet(type),
                     {left, rows_of(a, params.op, parts[j]), block_of(c, parts[i], parts[j])},
                     beside);
  }
}

}  // namespace

std::int64_t fine_length(std::int64_t length) noexcept {
  // The BLAS reaches most of its speed on an edge of 64, and on few tasks costs least.
  constexpr std::int64_t most_parts = 4;
  constexpr std::int64_t least = 64;
  constexpr std::int64_t granule = 16;
  const std::int64_t part = (length + most_parts - 1) / most_parts;
  const std::int64_t fine = std::max(least, (part + granule - 1) / granule * granule);
  return length < 2 * least ? length : fine;
}

void divide_gemm(const Arguments& arguments, Division& division) {
  auto params = arguments.param<GemmParams>();
  const View& b = arguments.operands[1];
  const View& c = arguments.operands[2];
  const std::vector<Range> rows = parts_of(c.rows);
  const std::vector<Range> columns = parts_of(c.cols);
  if (!params.fine || rows.size() * columns.size() < 2) return;
  params.fine = false;
  for (const Range& across : columns) {
    const View right = params.op_b == Op::none ? columns_of(b, across) : rows_of(b, across);
    for (const Range& down : rows)
      division.add(
          gemm_codelet(c.dtype),
          {rows_of(arguments.operands[0], params.op_a, down), right, block_of(c, down, across)},
          params);
  }
}

void divide_syrk(const Arguments& arguments, Division& division) {
  divide_rank_update(arguments, division, syrk_codelet(arguments.operands[1].dtype),
                     arguments.param<SyrkParams>().alpha, Op::transpose);
}

void divide_herk(const Arguments& arguments, Division& division) {
  const double alpha = arguments.param<SyrkParams>().alpha.real;
  divide_rank_update(arguments, division, herk_codelet(arguments.operands[1].dtype), alpha,
                     Op::conjugate);
}

void divide_trsm(const Arguments& arguments, Division& division) {
  auto params = arguments.param<TrsmParams>();
  const View& triangle = arguments.operands[0];
  const View& b = arguments.operands[1];
  const bool left = params.side == Side::left;
  const std::vector<Range> parts = parts_of(left ? b.cols : b.rows);
  if (!params.fine || parts.size() < 2) return;
  params.fine = false;
  for (const Range& part : parts)
    division.add(trsm_codelet(b.dtype), {triangle, left ? columns_of(b, part) : rows_of(b, part)},
                 params);
}

void divide_potrf(const Arguments& arguments, Division& division) {
  const auto params = arguments.param<PotrfParams>();
  const View& a = arguments.operands[0];
  const std::vector<Range> parts = parts_of(a.rows);
  if (!params.fine || parts.size() < 2) return;
  const bool lower = params.uplo == Uplo::lower;
  const Op near = lower ? Op::none : Op::conjugate;
  const Op far = lower ? Op::conjugate : Op::none;
  const auto block = [&](std::size_t i, std::size_t j) {
    return lower ? block_of(a, parts[i], parts[j]) : block_of(a, parts[j], parts[i]);
  };
  const TrsmParams solve{{1, 0}, lower ? Side::right : Side::left, params.uplo, Op::conjugate};
  const SyrkParams square{{-1, 0}, {1, 0}, params.uplo, near};
  const GemmParams product{{-1, 0}, {1, 0}, near, far};
  for (std::size_t k = 0; k < parts.size(); ++k) {
    division.add(potrf_codelet(a.dtype), {block(k, k)},
                 PotrfParams{params.first + parts[k].first, params.uplo});
    for (std::size_t i = k + 1; i < parts.size(); ++i)
      division.add(trsm_codelet(a.dtype), {block(k, k), block(i, k)}, solve);
    for (std::size_t i = k + 1; i < parts.size(); ++i) {
      division.add(herk_codelet(a.dtype), {block(i, k), block(i, i)}, square);
      for (std::size_t j = k + 1; j < i; ++j)
        division.add(gemm_codelet(a.dtype),
                     {block(lower ? i : j, k), block(lower ? j : i, k), block(i, j)}, product);
    }
  }
}

}  // namespace quadriga::kernels
