// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_cuda.cpp: the CUDA variants of methods with one reduction an
// iteration, for the four types.
#include <quadriga/error.h>

#include <complex>

#include "sparse/kernels/iterations.h"
#include "sparse/kernels/on_stream_cuda.h"
#include "sparse/kernels/one_reduction_bodies.h"
#include "sparse/kernels/one_reduction_launches_cuda.h"
#include "sparse/kernels/part_cuda.h"
#include "sparse/kernels/sum_table_cuda.h"

namespace quadriga::sparse {
namespace {

/// What the bodies compute with on a GPU.
template <class T>
struct RecurrencesOnStream : OnStream<T> {
  using OnStream<T>::stream_of;
  template <class Element>
  static void copy(const Arguments& a, Element* to, const Element* from, std::int64_t count) {
    cuda::copy_bytes(stream_of(a), to, from, static_cast<std::size_t>(count) * sizeof(Element));
  }
  static void copy_rows(const Arguments& arguments, const PartArrays<T>& a, const T* from,
                        std::int64_t columns, bool scaled, T* to) {
    cuda::copy_rows(stream_of(arguments), a, from, columns, scaled, to);
  }
  static void step(const Arguments& arguments, const PartArrays<T>& a, const PartVectors<T>& v,
                   const Recurrences<T>& more, T* x, double* sums) {
    cuda::step_with_recurrences(stream_of(arguments), a, v, more, more.states, x, sums);
  }
  static void multiply(const Arguments& arguments, const PartArrays<T>& a, BlockRange range,
                       const PartVectors<T>& v, const ColumnState* states, double* sums) {
    cuda::multiply(stream_of(arguments), a, range, v, states, sums);
  }
  static void add_partial(const Arguments& arguments, const PartArrays<T>& a,
                          const PartVectors<T>& v, const ColumnState* states, double* sums) {
    cuda::add_partial(stream_of(arguments), a, v, states, sums);
  }
  static void sum(const Arguments& arguments, const PartArrays<T>& a, const PartVectors<T>& v,
                  const Recurrences<T>& more, double* sums) {
    cuda::sum_products_of<T>(stream_of(arguments), a, more.u, more.w, v.columns, sums);
  }
};

/// Iterations of a matrix in one part.
template <class T>
void queue_iterations(const PartPlan& plan, const WorkShape& work, const Arguments& a) {
  auto* const stream = static_cast<cudaStream_t>(a.stream);
  const PartArrays<T> arrays(plan.shape, a.operands[0].data);
  auto* const states = a.operands[1].as<ColumnState>();
  T* const x = a.operands[2].as<T>();
  const PartVectors<T> v(work, a.operands[3].data);
  const Recurrences<T> more(work, a.operands[3].data);
  auto* const product_sums = a.operands[4].as<double>();
  auto* const step_sums = a.operands[5].as<double>();
  auto* const history = a.operands[6].as<IterationRecord>();
  auto* const arrived = reinterpret_cast<unsigned*>(a.operands[3].as<std::byte>() + work.arrived);
  quadriga::cuda::check(cudaMemsetAsync(arrived, 0, sizeof *arrived, stream), "clearing a counter");
  for (std::int64_t i = 0; i < a.param<IterationsParams>().count; ++i) {
    if (more.u) {
      cuda::step_and_set_scalars(stream, arrays, v, more, states, x, step_sums, history, arrived);
      cuda::multiply(stream, arrays, {0, plan.shape.blocks}, v, states, product_sums);
    } else {
      cuda::step_with_recurrences(stream, arrays, v, more, states, x, step_sums);
      cuda::multiply_and_set_scalars(stream, arrays, v, states, product_sums, step_sums, history,
                                     arrived);
    }
  }
}

/// Calls `work` with a number of the type.
template <class Work>
auto with_type(DType dtype, Work work) {
  switch (dtype) {
    case DType::float32:
      return work(float{});
    case DType::float64:
      return work(double{});
    case DType::complex64:
      return work(std::complex<float>{});
    case DType::complex128:
      return work(std::complex<double>{});
    case DType::bytes:
      break;
  }
  fail(Errc::internal, "a sparse matrix of bytes");
}

}  // namespace

void add_cuda(OneReductionPart& part, const PartPlan& plan, const WorkShape& work) {
  with_type(plan.shape.dtype, [&]<class T>(T) {
    set_variants<T, RecurrencesOnStream<T>>(part, plan, work, &Codelet::cuda);
  });
}

Kernel one_reduction_on_cuda(const PartPlan& plan, const WorkShape& work) {
  return with_type(plan.shape.dtype, [&]<class T>(T) -> Kernel {
    return [&plan, &work](const Arguments& a) { queue_iterations<T>(plan, work, a); };
  });
}

Kernel set_step_alone_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  return [=](const Arguments& a) {
    cuda::set_step_alone(static_cast<cudaStream_t>(a.stream), sum_table(a, 1, blocks, columns),
                         a.operands[0].as<ColumnState>());
  };
}

Kernel end_step_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  return [=](const Arguments& a) {
    cuda::end_step(static_cast<cudaStream_t>(a.stream), sum_table(a, 2, blocks, columns),
                   a.operands[0].as<ColumnState>(), a.operands[1].as<IterationRecord>());
  };
}

Kernel set_scalars_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns,
                           CgMethod method) {
  return [=](const Arguments& a) {
    const std::size_t of_products = method == CgMethod::pipelined ? 2 : 2 + blocks.size();
    cuda::set_scalars(static_cast<cudaStream_t>(a.stream), sum_table(a, 2, blocks, columns),
                      sum_table(a, of_products, blocks, columns), method,
                      a.operands[0].as<ColumnState>(), a.operands[1].as<IterationRecord>());
  };
}

}  // namespace quadriga::sparse
