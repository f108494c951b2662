// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_cuda.cpp: operands on a device to launches, for the four types.
#include "sparse/kernels/part_cuda.h"

#include <quadriga/error.h>

#include "base/number_type.h"
#include "device/cuda/cuda_check.h"
#include "sparse/kernels/iterations.h"
#include "sparse/kernels/launches_cuda.h"
#include "sparse/kernels/on_stream_cuda.h"
#include "sparse/kernels/sum_table_cuda.h"

namespace quadriga::sparse {
namespace {

cudaStream_t stream_of(const Arguments& arguments) {
  return static_cast<cudaStream_t>(arguments.stream);
}

void queue_copy(const Arguments& a, void* to, const void* from, std::size_t bytes) {
  quadriga::cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(a)),
                        "a copy within the device");
}

/// The variants of one part's codelets; as Bodies of part_codelets.cpp, but what states say is
/// known on the device only.
template <class T>
class Launches {
 public:
  Launches(const PartPlan& plan, const WorkShape& work) : plan_(&plan), work_(&work) {}

  void load(const Arguments& a) const {
    const T* const x = a.operands[1].as<const T>();
    const PartVectors<T> v(*work_, a.operands[2].data);
    queue_copy(a, v.p, x, vector_bytes(plan_->shape.rows));
    send(a, x, 3, false);
  }

  void product(const Arguments& a, BlockRange range, bool is_first, bool has_halo) const {
    const bool turns = a.param<ProductParams>().turns;
    const auto* const states = turns ? a.operands[1].as<const ColumnState>() : nullptr;
    const PartVectors<T> v(*work_, a.operands[2].data);
    if (turns && is_first) cuda::turn(stream_of(a), arrays(a), v, states);
    if (has_halo) take_halo(a, v, states, 4);
    cuda::multiply(stream_of(a), arrays(a), range, v, states,
                   turns ? a.operands[3].as<double>() : nullptr);
  }

  void remainder(const Arguments& a, std::size_t index, bool arrives) const {
    const bool turns = a.param<ProductParams>().turns;
    const auto* const states = turns ? a.operands[1].as<const ColumnState>() : nullptr;
    const PartVectors<T> v(*work_, a.operands[2].data);
    if (arrives) take_arrival(a, plan_->arrivals[index], v, states, 4);
    const bool is_last = index + 1 == plan_->remainders.size();
    add(a, index, v, states, turns && is_last ? a.operands[3].as<double>() : nullptr);
  }

  void addition(const Arguments& a, std::size_t index) const {
    PartVectors<T> v(*work_, a.operands[2].data);
    v.q = a.operands[1].as<T>();
    add(a, index, v, nullptr, nullptr);
  }

  void residual_of(const Arguments& a) const {
    const PartVectors<T> v(*work_, a.operands[2].data);
    const T* const q = a.param<ResidualParams>().has_product ? v.q : nullptr;
    cuda::residual(stream_of(a), arrays(a), v, q, a.operands[1].as<const T>(),
                   a.operands[3].as<double>());
    if (v.z)
      start(a, *plan_, v, {a.param<ResidualParams>().first, true}, nullptr, 4);
    else
      send(a, v.r, 4, true);
  }

  void step_of(const Arguments& a) const {
    const PartVectors<T> v(*work_, a.operands[3].data);
    cuda::step(stream_of(a), arrays(a), v, a.operands[1].as<const ColumnState>(),
               a.operands[2].as<T>(), a.operands[4].as<double>());
    if (v.z)
      start(a, *plan_, v, a.param<LevelParams>(), a.operands[1].as<const ColumnState>(), 5);
    else
      send(a, v.r, 5, true);
  }

  void apply(const Arguments& a) const {
    PartVectors<T> v(*work_, a.operands[2].data);
    v.q = a.operands[1].as<T>();
    take_halo(a, v, nullptr, 3);
    cuda::multiply<T>(stream_of(a), arrays(a), {0, plan_->shape.blocks}, v, nullptr, nullptr);
  }

  void iterations(const Arguments& a) const {
    auto* const states = a.operands[1].as<ColumnState>();
    T* const x = a.operands[2].as<T>();
    const PartVectors<T> v(*work_, a.operands[3].data);
    auto* const arrived =
        reinterpret_cast<unsigned*>(a.operands[3].as<std::byte>() + work_->arrived);
    quadriga::cuda::check(cudaMemsetAsync(arrived, 0, sizeof *arrived, stream_of(a)),
                          "clearing a counter");
    for (std::int64_t i = 0; i < a.param<IterationsParams>().count; ++i) {
      cuda::turn(stream_of(a), arrays(a), v, states);
      cuda::multiply_and_set_step(stream_of(a), arrays(a), v, states, a.operands[4].as<double>(),
                                  arrived);
      cuda::step_and_set_direction(stream_of(a), arrays(a), v, states, x,
                                   a.operands[5].as<double>(), a.operands[6].as<IterationRecord>(),
                                   arrived);
    }
  }

 private:
  static constexpr auto start = &LevelBodies<T, OnStream<T>>::start;
  PartArrays<T> arrays(const Arguments& a) const { return {plan_->shape, a.operands[0].data}; }
  std::size_t vector_bytes(std::int64_t rows) const {
    return static_cast<std::size_t>(rows * work_->columns) * sizeof(T);
  }

  void send(const Arguments& a, const T* vector, std::size_t operand, bool scaled) const {
    std::int64_t first = 0;
    for (const HaloTransfer& each : plan_->sends) {
      cuda::gather(stream_of(a), arrays(a), vector, work_->columns, first, each.count, scaled,
                   a.operands[operand++].as<T>());
      first += each.count;
    }
  }

  void take_halo(const Arguments& a, const PartVectors<T>& v, const ColumnState* states,
                 std::size_t operand) const {
    for (const HaloTransfer& each : plan_->arrivals) take_arrival(a, each, v, states, operand++);
  }
  void take_arrival(const Arguments& a, const HaloTransfer& each, const PartVectors<T>& v,
                    const ColumnState* states, std::size_t operand) const {
    const T* const arrived = a.operands[operand].as<const T>();
    if (states)
      cuda::turn_halo(stream_of(a), plan_->shape, v, states, arrived, each.first, each.count);
    else
      queue_copy(a, v.p + (plan_->shape.own_columns + each.first) * v.columns, arrived,
                 vector_bytes(each.count));
  }

  void add(const Arguments& a, std::size_t index, const PartVectors<T>& v,
           const ColumnState* states, double* sums) const {
    const PartShape& shape = plan_->remainders[index];
    const PartArrays<T> remainder(shape, a.operands[0].data);
    PartVectors<T> apart = v;
    apart.q = v.partial;
    cuda::multiply<T>(stream_of(a), remainder, {0, shape.blocks}, apart, states, nullptr);
    cuda::add_partial(stream_of(a), remainder, v, states, sums);
  }

  const PartPlan* plan_;
  const WorkShape* work_;
};

template <class T>
void add_launches(PartCodelets& part, const PartPlan& plan, const WorkShape& work) {
  const Launches<T> launches(plan, work);
  const BlockRange all{0, plan.shape.blocks};
  const BlockRange inner{0, plan.shape.inner_blocks};
  const BlockRange border{plan.shape.inner_blocks, plan.shape.blocks};
  part.load.cuda = [=](const Arguments& a) { launches.load(a); };
  part.product.cuda = [=](const Arguments& a) { launches.product(a, all, true, true); };
  part.alone.cuda = [=](const Arguments& a) { launches.product(a, all, true, false); };
  part.inner.cuda = [=](const Arguments& a) { launches.product(a, inner, true, false); };
  part.border.cuda = [=](const Arguments& a) { launches.product(a, border, false, true); };
  part.begin.cuda = part.residual.cuda = [=](const Arguments& a) { launches.residual_of(a); };
  part.step.cuda = [=](const Arguments& a) { launches.step_of(a); };
  part.apply.cuda = [=](const Arguments& a) { launches.apply(a); };
  for (std::size_t i = 0; i < plan.remainders.size(); ++i) {
    part.remainders[i].cuda = [=](const Arguments& a) { launches.remainder(a, i, true); };
    part.resting[i].cuda = [=](const Arguments& a) { launches.remainder(a, i, false); };
    part.additions[i].cuda = [=](const Arguments& a) { launches.addition(a, i); };
  }
}

}  // namespace

void add_cuda(PartCodelets& part, const PartPlan& plan, const WorkShape& work) {
  with_number_type(plan.shape.dtype, [&]<class T>() { add_launches<T>(part, plan, work); });
}

Kernel restart_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  return [=](const Arguments& a) {
    cuda::restart(stream_of(a), sum_table(a, 1, blocks, columns), a.operands[0].as<ColumnState>(),
                  a.param<RestartParams>());
  };
}

Kernel set_step_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  return [=](const Arguments& a) {
    cuda::set_step(stream_of(a), sum_table(a, 1, blocks, columns), a.operands[0].as<ColumnState>());
  };
}

Kernel set_direction_on_cuda(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  return [=](const Arguments& a) {
    cuda::set_direction(stream_of(a), sum_table(a, 2, blocks, columns),
                        a.operands[0].as<ColumnState>(), a.operands[1].as<IterationRecord>());
  };
}

Kernel iterations_on_cuda(const PartPlan& plan, const WorkShape& work) {
  return with_number_type(plan.shape.dtype, [&]<class T>() -> Kernel {
    return [launches = Launches<T>(plan, work)](const Arguments& a) { launches.iterations(a); };
  });
}

Kernel snapshot_on_cuda() {
  return [](const Arguments& a) {
    const std::size_t states = bytes_of(a.operands[0]);
    queue_copy(a, a.operands[2].data, a.operands[0].data, states);
    queue_copy(a, a.operands[2].as<std::byte>() + states, a.operands[1].data,
               bytes_of(a.operands[1]));
  };
}

Kernel replicate_on_cuda() {
  return [](const Arguments& a) {
    queue_copy(a, a.operands[1].data, a.operands[0].data, bytes_of(a.operands[0]));
  };
}

}  // namespace quadriga::sparse
