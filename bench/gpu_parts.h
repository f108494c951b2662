// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_parts.h: benchmarks on GPUs of what a run consists of: kernels, copies, small problems.
#pragma once

#include <quadriga/machine.h>

#include "settings.h"

namespace quadriga::bench {

/// Rates of the matrix kernels on tiles of --tile: each alone, on one stream.
void kernel_rates(const Machine& machine, const Settings& settings);
/// Rates of copies of tiles of 8 MiB through an engine, beside the runtime's own.
void engine_copies(const Machine& machine, const Settings& settings);
/// Product and Cholesky of order --n beside copying in, one call of CUDA's libraries, copying out.
void small_problems(const Machine& machine, const Settings& settings);
/// Product and Cholesky of order --n of matrices that lie on the first GPU, beside one call of
/// CUDA's libraries on the same memory.
void resident_problems(const Machine& machine, const Settings& settings);
/// Operations queued a second on 1, 2, ... --gpus GPUs, beside as many threads that only queue.
void queue_rates(const Settings& settings, Machine (*machine_of)(int gpus));
/// Products and factorizations of --count orders drawn from --least to --most by --seed on 1, 2, 4
/// ... --gpus GPUs, beside the line between the powers of two around each, and beside fewer GPUs.
void drawn_orders(const Settings& settings, Machine (*machine_of)(int gpus));
/// As the command `ends` of quadriga-bench, on GPUs.
void gpu_ends(const Machine& machine, const Settings& settings);
/// A pipeline of chunks with a kernel of a stated time, beside its bound and streams by hand.
void stream_rates(const Machine& machine, const Settings& settings);
/// Microseconds a command of small chunks, beside the same calls by hand: --count (chunks)
/// --kernels --bytes.
void stream_command_costs(const Machine& machine, const Settings& settings);
/// A stream of chunks over --gpus GPUs, by hand in several ways (bench/manual) and as a pipeline.
void by_hand_rates(const Settings& settings, Machine (*machine_of)(int gpus));

}  // namespace quadriga::bench
