// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/pack_cuda.h: launches of the kernels that carry out plans, on a stream.
#pragma once

#include <cuda_runtime_api.h>
#include <quadriga/message_types.h>

#include <span>

#include "message/pack/device_packer.h"
#include "message/pack/device_plan.h"

namespace quadriga::message::cuda {

/// Plans that one launch may carry out: as many as its parameters hold.
inline constexpr int most_plans_a_launch = 48;

/// What plans must share to be one launch.
struct KernelKind {
  PlanPath path = PlanPath::granules;
  int granule = 1;
  PlanLeaf leaf = PlanLeaf::run;
  bool operator==(const KernelKind&) const = default;
};
KernelKind kind_of(const PackPlan& plan) noexcept;

/// All return once queued; plans are of one kind, at most most_plans_a_launch. They occupy no more
/// than so many multiprocessors; 0: all.
void pack(cudaStream_t stream, std::span<const PackPlan> plans, int most_processors);
void unpack(cudaStream_t stream, std::span<const PackPlan> plans, int most_processors);
/// One part from place to place; returns once queued.
void move(cudaStream_t stream, const MovePlan& plan, int most_processors);
/// Plans made for a reduction of the type's elements, with any leaf.
void unpack_reduce(cudaStream_t stream, std::span<const PackPlan> plans, ReduceOperation operation,
                   ElementType type, int most_processors);

/// into = from op with, of `bytes` side by side; returns once queued.
void combine(cudaStream_t stream, const CombinePart& part, ReduceOperation operation,
             int most_processors);

}  // namespace quadriga::message::cuda
