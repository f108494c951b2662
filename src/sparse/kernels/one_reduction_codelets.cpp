// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_codelets.cpp: signatures, costs and host variants.
#include "sparse/kernels/one_reduction_codelets.h"

#include <quadriga/error.h>

#include <complex>

#include "sparse/kernels/accesses.h"
#include "sparse/kernels/level_host.h"
#include "sparse/kernels/one_reduction_bodies.h"
#include "sparse/kernels/one_reduction_iterations.h"
#include "sparse/kernels/part_codelets.h"
#include "sparse/kernels/scalar_codelets.h"

namespace quadriga::sparse {
namespace {

/// What the bodies compute with on the host.
template <class T>
struct RecurrencesOnHost : OnHost<T> {
  template <class Element>
  static void copy(const Arguments&, Element* to, const Element* from, std::int64_t count) {
    std::copy_n(from, count, to);
  }
  static void copy_rows(const Arguments&, const PartArrays<T>& a, const T* from,
                        std::int64_t columns, bool scaled, T* to) {
    sparse::copy_rows(a, from, columns, scaled, to);
  }
  static void step(const Arguments&, const PartArrays<T>& a, const PartVectors<T>& v,
                   const Recurrences<T>& more, T* x, double* sums) {
    step_with_recurrences(a, v, more, more.states, x, sums);
  }
  static void multiply(const Arguments&, const PartArrays<T>& a, BlockRange range,
                       const PartVectors<T>& v, const ColumnState*, double* sums) {
    sparse::multiply(a, range, v, sums);
  }
  static void add_partial(const Arguments&, const PartArrays<T>& a, const PartVectors<T>& v,
                          const ColumnState*, double* sums) {
    sparse::add_partial(a.shape(), v, sums);
  }
  static void sum(const Arguments&, const PartArrays<T>& a, const PartVectors<T>& v,
                  const Recurrences<T>& more, double* sums) {
    sum_products_of(a.shape(), more.u, more.w, v.columns, sums);
  }
};

std::vector<Access> and_buffers(std::initializer_list<Access> signature, std::size_t count,
                                Access access) {
  std::vector<Access> all(signature);
  all.insert(all.end(), count, access);
  return all;
}

void sign(OneReductionPart& part, const PartPlan& plan) {
  using namespace accesses;
  const std::size_t sends = plan.sends.size();
  const std::size_t arrivals = plan.arrivals.size();
  part.reload = {"sparse_reload", and_buffers({in, in, both}, sends, out)};
  part.enter = {"sparse_enter", and_buffers({in, in, both}, sends, out)};
  part.move = {"sparse_move", {in, both}};
  part.step = {"sparse_recurrences", and_buffers({in, in, both, both, out}, sends, out)};
  part.product = {"sparse_product", and_buffers({in, both, out}, arrivals, in)};
  part.inner = {"sparse_product_inner", {in, both, out}};
  part.border = {"sparse_product_border", and_buffers({in, both, both}, arrivals, in)};
  part.sum = {"sparse_sum_products", {in, in, out}};
  part.remainders.assign(plan.remainders.size(), {"sparse_product_columns", {in, both, both, in}});
  part.resting.assign(plan.remainders.size(), {"sparse_product_columns", {in, both, both}});
}

void estimate(OneReductionPart& part, const PartPlan& plan, const WorkShape& work) {
  const PartShape& shape = plan.shape;
  const auto rows = static_cast<double>(shape.rows * work.columns);
  const double vector = rows * static_cast<double>(size_of(shape.dtype));
  const double flops = 2 * static_cast<double>(shape.elements * work.columns);
  const double bytes = static_cast<double>(shape.bytes) + 2 * vector;
  const double inner =
      shape.blocks > 0 ? static_cast<double>(shape.inner_blocks) / static_cast<double>(shape.blocks)
                       : 1;
  const auto of = [](double operations, double moved) {
    return [=](const Arguments&) { return Cost::of_work(operations, moved); };
  };
  part.reload.cost = part.enter.cost = part.move.cost = of(0, 2 * vector);
  part.step.cost = of(step_passes(work.method) * rows, step_passes(work.method) * vector);
  part.product.cost = of(flops, bytes);
  part.inner.cost = of(inner * flops, inner * bytes);
  part.border.cost = of((1 - inner) * flops, (1 - inner) * bytes);
  part.sum.cost = of(2 * rows, 2 * vector);
  for (std::size_t i = 0; i < plan.remainders.size(); ++i) {
    const PartShape& remainder = plan.remainders[i];
    part.remainders[i].cost = part.resting[i].cost =
        of(2 * static_cast<double>(remainder.elements * work.columns),
           static_cast<double>(remainder.bytes + remainder_vector_bytes(remainder) * work.columns));
  }
}

void complete(OneReductionPart& part, const PartPlan& plan, const WorkShape& work) {
  sign(part, plan);
  estimate(part, plan, work);
  add_cuda(part, plan, work);
  const auto of_type = [&]<class T>(T) {
    set_variants<T, RecurrencesOnHost<T>>(part, plan, work, &Codelet::cpu);
  };
  switch (plan.shape.dtype) {
    case DType::float32:
      return of_type(float{});
    case DType::float64:
      return of_type(double{});
    case DType::complex64:
      return of_type(std::complex<float>{});
    case DType::complex128:
      return of_type(std::complex<double>{});
    case DType::bytes:
      fail(Errc::internal, "a sparse matrix of bytes");
  }
}

}  // namespace

OneReductionCodelets::OneReductionCodelets(const SolveCodelets& codelets,
                                           std::span<const PartPlan> plans, std::int64_t columns,
                                           CgMethod method)
    : method_(method) {
  std::vector<std::int64_t> blocks;
  for (const PartPlan& plan : plans) {
    complete(parts_.emplace_back(), plan, codelets.work(blocks.size()));
    blocks.push_back(plan.shape.blocks);
  }
  set_step_ = set_step_alone_codelet(blocks, columns);
  end_step_ = end_step_codelet(blocks, columns);
  set_scalars_ = set_scalars_codelet(blocks, columns, method);
  if (plans.size() == 1) iterations_ = iterations_codelet(*this, plans.front(), codelets.work(0));
  if (plans.size() > 1) joint_iterations_ = joint_iterations_codelets(*this, plans);
}

}  // namespace quadriga::sparse
