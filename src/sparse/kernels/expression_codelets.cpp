// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/expression_codelets.cpp: operands to arrays, for the four types.
#include "sparse/kernels/expression_codelets.h"

#include "base/number_type.h"
#include "sparse/kernels/expression_cuda.h"
#include "sparse/kernels/number.h"

namespace quadriga::sparse {
namespace {

/// So many operations for each element that is written, and the bytes of all operands.
std::function<Cost(const Arguments&)> cost_by_bytes(double flops) {
  return [=](const Arguments& a) {
    double bytes = 0;
    for (const View& each : a.operands) bytes += static_cast<double>(bytes_of(each));
    const View& longest = a.operands[a.operands.size() > 1 ? 1 : 0];
    return Cost::of_work(flops * static_cast<double>(longest.rows), bytes);
  };
}

std::vector<Access> reading(Access first, std::size_t others) {
  std::vector<Access> all(1 + others, Access::read);
  all.front() = first;
  return all;
}

template <class T>
Kernel combine_on_host() {
  return [](const Arguments& a) { combine(term_arrays<T>(a)); };
}

template <class T>
Kernel multiply_on_host() {
  return [](const Arguments& a) {
    multiply_elements(a.operands[0].rows, a.operands[1].as<const T>(), a.operands[2].as<const T>(),
                      a.operands[0].as<T>());
  };
}

template <class T>
Kernel sums_on_host() {
  return [](const Arguments& a) {
    sum_blocks(a.param<BlockedRows>(), a.operands[1].as<const T>(), a.operands[2].as<const T>(),
               a.operands[0].as<double>());
  };
}

void add_totals(const Arguments& a, const std::vector<std::int64_t>& blocks, bool has_imaginary) {
  ScalarValue value;
  for (std::size_t part = 0; part < blocks.size(); ++part) {
    const auto* const sums = a.operands[1 + part].as<const double>();
    for (std::int64_t block = 0; block < blocks[part]; ++block) {
      value.real += sums[block];
      if (has_imaginary) value.imag += sums[blocks[part] + block];
    }
  }
  *a.operands[0].as<ScalarValue>() = value;
}

void compute_scalar(const Arguments& a) {
  const auto params = a.param<ScalarParams>();
  std::size_t operand = 1;
  const auto value = [&](bool has, const ScalarValue& constant) {
    return has ? *a.operands[operand++].as<const ScalarValue>() : constant;
  };
  const ScalarValue left = value(params.has_left, params.left);
  const ScalarValue right = value(params.has_right, params.right);
  *a.operands[0].as<ScalarValue>() = value_of(params, left, right);
}

}  // namespace

ExpressionCodelets::ExpressionCodelets(DType dtype, std::vector<std::int64_t> blocks) {
  const bool is_complex_type = dtype == DType::complex64 || dtype == DType::complex128;
  for (const bool updates : {false, true})
    for (std::size_t vectors = 0; vectors <= most_terms; ++vectors)
      for (std::size_t scalars = 0; scalars <= most_terms; ++scalars) {
        Codelet& codelet = combine_[updates][vectors][scalars];
        codelet = {"sparse_combine",
                   reading(updates ? Access::update : Access::write, vectors + scalars)};
        codelet.cpu =
            with_number_type(dtype, []<class T>() -> Kernel { return combine_on_host<T>(); });
        codelet.cuda = combine_on_cuda(dtype);
        codelet.cost = cost_by_bytes(2 * static_cast<double>(vectors));
      }
  multiply_ = {"sparse_multiply_elements", reading(Access::write, 2)};
  multiply_.cpu =
      with_number_type(dtype, []<class T>() -> Kernel { return multiply_on_host<T>(); });
  multiply_.cuda = multiply_elements_on_cuda(dtype);
  multiply_.cost = cost_by_bytes(1);
  sum_blocks_ = {"sparse_dot", reading(Access::write, 2)};
  sum_blocks_.cpu = with_number_type(dtype, []<class T>() -> Kernel { return sums_on_host<T>(); });
  sum_blocks_.cuda = sum_blocks_on_cuda(dtype);
  sum_blocks_.cost = cost_by_bytes(2);
  total_ = {"sparse_total", reading(Access::write, blocks.size())};
  total_.cuda = total_on_cuda(blocks, is_complex_type);
  total_.cost = cost_by_bytes(1);
  total_.cpu = [=](const Arguments& a) { add_totals(a, blocks, is_complex_type); };
  for (std::size_t operands = 0; operands < scalar_.size(); ++operands) {
    scalar_[operands] = {"sparse_scalar", reading(Access::write, operands)};
    scalar_[operands].cpu = compute_scalar;
    scalar_[operands].cuda = scalar_on_cuda();
    scalar_[operands].cost = cost_by_bytes(1);
  }
}

}  // namespace quadriga::sparse
