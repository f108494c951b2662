// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/kernel_table_test.cpp: each row of the kernels' table is complete: parameters,
// a cost in proportion to the operations that plain loops count, variants.
#include "linalg/kernels/codelets.h"
#include "linalg/kernels/cuda_libraries.h"
#include "unit/kernels/matrices.h"

#include <quadriga/error.h>

#include <cmath>
#include <set>
#include <string>

namespace quadriga::kernels {
namespace {

struct Counted {
  std::vector<View> operands;
  std::vector<std::byte> params;
  /// Multiplications, with an addition each, of the plain loops; a division or root is one, too.
  double operations = 0;
  /// Of a volume of 1, where the order is large.
  double operations_a_volume = 1;
};

template <class P>
std::vector<std::byte> bytes_of(const P& params) {
  const auto bytes = std::as_bytes(std::span(&params, 1));
  return {bytes.begin(), bytes.end()};
}

View shape(std::int64_t rows, std::int64_t cols) {
  return {nullptr, rows, cols, rows, DType::float64};
}

double loops_of_gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  double count = 0;
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t p = 0; p < k; ++p) ++count;
  return count;
}

double loops_of_syrk(std::int64_t n, std::int64_t k) {
  double count = 0;
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = j; i < n; ++i)
      for (std::int64_t p = 0; p < k; ++p) ++count;
  return count;
}

/// Right-hand sides of a triangle of an order, by substitution.
double loops_of_trsm(std::int64_t order, std::int64_t sides) {
  double count = 0;
  for (std::int64_t side = 0; side < sides; ++side)
    for (std::int64_t i = 0; i < order; ++i) {
      for (std::int64_t p = 0; p < i; ++p) ++count;
      ++count;  // by the diagonal
    }
  return count;
}

double loops_of_potrf(std::int64_t n) {
  double count = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    ++count;  // the root
    for (std::int64_t i = k + 1; i < n; ++i) ++count;
    for (std::int64_t j = k + 1; j < n; ++j)
      for (std::int64_t i = j; i < n; ++i) ++count;
  }
  return count;
}

/// A task of a kernel that grows with n, and isn't square where it needn't be. A kernel that this
/// doesn't know fails the test: it states how much it computes here.
Counted counted(std::string_view kernel, std::int64_t n) {
  const std::int64_t m = n + 3;
  const std::int64_t k = n / 2;
  if (kernel.starts_with("gemm"))
    return {{shape(k, m), shape(k, n), shape(m, n)},
            bytes_of(GemmParams{{1, 0}, {1, 0}, Op::transpose, Op::none}),
            loops_of_gemm(m, n, k),
            1};
  if (kernel.starts_with("syrk") || kernel.starts_with("herk"))
    return {{shape(n, k), shape(n, n)}, bytes_of(SyrkParams{}), loops_of_syrk(n, k), 1.0 / 2};
  if (kernel == "trsm")
    return {{shape(n, n), shape(m, n)},
            bytes_of(TrsmParams{{1, 0}, Side::right}),
            loops_of_trsm(n, m),
            1.0 / 2};
  if (kernel == "potrf")
    return {{shape(n, n)}, bytes_of(PotrfParams{}), loops_of_potrf(n), 1.0 / 6};
  const double elements = static_cast<double>(m) * static_cast<double>(n);
  const double moves = 1.0 / 64;  // volume_of_a_move
  if (kernel.starts_with("copy"))
    return {{shape(n, m), shape(m, n)}, bytes_of(CopyParams{Op::transpose, {}}), elements, moves};
  if (kernel == "axpby")
    return {{shape(m, n), shape(m, n)}, bytes_of(AxpbyParams{}), elements, moves};
  if (kernel == "scale") return {{shape(m, n)}, bytes_of(ScaleParams{}), elements, moves};
  if (kernel.starts_with("set")) return {{shape(m, n)}, bytes_of(SetParams{}), elements, moves};
  if (kernel == "add_diagonal")
    return {{shape(m, n)}, bytes_of(AddDiagonalParams{}), elements, moves};
  if (kernel == "mirror") return {{shape(m, n)}, bytes_of(MirrorParams{}), elements, moves};
  if (kernel == "random") return {{shape(m, n)}, bytes_of(RandomMatrix{}), elements, moves};
  if (kernel == "covariance") return {{shape(m, n)}, bytes_of(CovarianceTile{}), elements, moves};
  if (kernel == "measure")
    return {{shape(m, n), shape(1, 1)}, bytes_of(MeasureParams{}), elements, moves};
  ADD_FAILURE() << "no loops count what " << kernel << " computes";
  return {};
}

std::vector<const KernelSpec*> rows() {
  std::vector<const KernelSpec*> all;
  for (const KernelModule module : kernel_table())
    for (const KernelSpec& spec : module()) all.push_back(&spec);
  return all;
}

TEST(KernelTable, HasEachNameOnce) {
  std::set<std::string_view> names;
  for (const KernelSpec* row : rows()) EXPECT_TRUE(names.insert(row->name).second) << row->name;
  for (const char* name : {"gemm", "gemm_write", "syrk", "syrk_write", "herk", "herk_write", "trsm",
                           "potrf", "copy", "random", "covariance", "measure"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(KernelTable, CodeletsAreTheirRows) {
  for (const KernelSpec* row : rows())
    for (const DType type : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
      if (row->name == "covariance" && type > DType::float64) continue;
      const Codelet& codelet = row->codelet(type);
      EXPECT_EQ(codelet.name, "sdcz"[static_cast<int>(type)] + std::string(row->name));
      EXPECT_EQ(codelet.access, row->access) << row->name;
      EXPECT_EQ(&row->codelet(type), &codelet) << row->name;
      EXPECT_TRUE(codelet.cpu) << row->name;
      EXPECT_TRUE(codelet.cost) << row->name;
      EXPECT_EQ(bool(codelet.cuda), !cuda_libraries().empty()) << row->name;
    }
}

TEST(KernelTable, RowsHaveParametersAndVariantsOfAllTypes) {
  for (const KernelSpec* row : rows()) {
    EXPECT_EQ(row->params_bytes, counted(row->name, 4).params.size()) << row->name;
    for (const auto host : row->host) EXPECT_NE(host, nullptr) << row->name;
    std::apply([&](auto... variant) { EXPECT_TRUE((... && variant)) << row->name; }, row->stream);
  }
}

TEST(KernelTable, CostsAreInProportionToTheOperations) {
  constexpr std::int64_t few = 40;
  for (const KernelSpec* row : rows()) {
    double error_before = 0;
    for (const std::int64_t n : {few, 4 * few}) {
      const Counted task = counted(row->name, n);
      const Cost cost = row->cost({task.operands, task.params, nullptr});
      EXPECT_FALSE(cost.kernel.empty());
      // What is of a lower order than the volume vanishes with 1/n.
      const double error = std::abs(cost.volume * task.operations_a_volume / task.operations - 1);
      EXPECT_LE(error, 4.0 / static_cast<double>(n)) << row->name << " of " << n;
      if (n > few) {
        EXPECT_LE(error, error_before / 3 + 1e-12) << row->name;
      }
      error_before = error;
    }
  }
}

/// A device that stands for a GPU, or a description of one, reserves what a GPU does; cores, whose
/// variants need none, nothing.
TEST(KernelTable, WorkspacesAreTheSameOnAllAcceleratorsAndSmall) {
  int stated = 0;
  for (const KernelSpec* row : rows()) {
    const Codelet& codelet = row->codelet(DType::float64);
    EXPECT_EQ(bool(codelet.workspace), row->workspace != nullptr) << row->name;
    if (!row->workspace) continue;
    ++stated;
    for (const std::int64_t n : {1, 40, 300, 5000}) {
      const Counted task{{shape(n, n)}, counted(row->name, 4).params};
      const Arguments arguments{task.operands, task.params, nullptr};
      EXPECT_EQ(codelet.workspace(arguments, DeviceKind::cpu), 0u) << row->name;
      EXPECT_EQ(codelet.workspace(arguments, DeviceKind::file), 0u) << row->name;
      const std::size_t bytes = codelet.workspace(arguments, DeviceKind::cuda);
      EXPECT_EQ(bytes, codelet.workspace(arguments, DeviceKind::emulated)) << row->name;
      EXPECT_EQ(bytes, row->workspace(arguments)) << row->name;
      EXPECT_GT(bytes, 0u) << row->name;
      EXPECT_LE(bytes, 2048 + quadriga::bytes_of(task.operands[0]) / 100) << row->name;
    }
  }
  EXPECT_EQ(stated, 1) << "a row that this test doesn't know: it takes one square operand";
}

}  // namespace
}  // namespace quadriga::kernels
