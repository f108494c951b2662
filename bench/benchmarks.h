// SPDX-License-Identifier: BSD-3-Clause
// bench/benchmarks.h: the benchmarks of the program quadriga-bench, each run in a process of its
// own.
#pragma once

#include "settings.h"

namespace quadriga::bench {

/// Nanoseconds a task without work: --case gemm3|independent|chains --cores --repeat.
void empty_tasks(const Settings& settings);
/// Nanoseconds that a device's driver takes for a task: --case chain|chains|gemm3|independent
/// --count (devices) --streams --repeat.
void driver(const Settings& settings);
/// Microseconds from the end of a kernel on emulated devices until the driver has passed it on,
/// under load and alone: --count (devices) --tasks --alone (how many) --microseconds (of those).
void ends(const Settings& settings);
/// Nanoseconds of CPU time that deciding takes for a task of Cholesky, by the virtual clock:
/// --count (devices) --machine --tiles (of the smaller matrix; the larger has twice as many in each
/// direction) --repeat.
void decide(const Settings& settings);
/// Nanoseconds that a policy takes for a task while so many are ready, by the virtual clock:
/// --policy --tasks --machine --count (devices) --repeat.
void ready_tasks(const Settings& settings);
void unrolled(const Settings& settings);
/// How much sooner a program ends whose overwrites don't wait for readers: --clock --devices
/// --steps --users --microseconds (of a task) --memory (bytes for renaming).
void renaming(const Settings& settings);
/// Decides a run once more and compares: --log (what the setting schedule_log made).
void replay_log(const Settings& settings);
/// Calls of malloc a task once everything has its size: --cores.
void allocations(const Settings& settings);
/// Nanoseconds to register known memory again, and of an access by the host when nothing moves:
/// --repeat.
void register_again(const Settings& settings);
void access_on_host(const Settings& settings);
/// Resident memory after a million tasks: --cores.
void resident_memory(const Settings& settings);
/// Products and Cholesky on this host beside OpenBLAS: --n --tile --repeat --devices.
void host_gemm(const Settings& settings);
void host_potrf(const Settings& settings);
/// Tasks that divide on cores: --run overhead (percent over fine tiles alone: --n --tile --block),
/// tail (linalg's Cholesky by coarse tiles: --n --tile) or tasks (ns of a fine task: --blocks along
/// an edge); --devices --repeat.
void division(const Settings& settings);
/// By the virtual clock: --operation gemm|potrf --run devices-N|out-of-core|idgraf-600MB --machine,
/// or --run rate-N with --n --tile --dtype --policy --in-place on --memory --h2d --trace, for any
/// machine and matrix.
void simulated(const Settings& settings);
/// Products and Cholesky as papers ran them, by the virtual clock: --operation gemm|potrf --machine
/// (a description) --n --tile --devices --cores --streams --policy, and --fine (order of the tiles)
/// for tasks that cores divide.
void papers(const Settings& settings);
/// What default plans reach of the best of orders beside theirs, by the virtual clock: --operation
/// gemm|potrf --run machines (drawn at random) or orders (on the machine, beside the line between
/// powers of two) --count --seed --machine --devices (at most) --least --most (orders) --only.
void plans(const Settings& settings);
/// Pipelines under the virtual clock, percent over their bound, and what a stage costs: --run
/// all|fixed|random|ahead-8|first-come|largest|rate|cost --seeds --table on (by r as well) --count
/// --stages --devices (of the cost); commands (what one costs on --devices: --count --kernels);
/// figures (those of the paper on GPU-Chariot, as tables with --table on); applications (the
/// protein search and spectra on --machine, whose link host-memory carries --host-memory; --cells
/// in 10^9 a second, --source and --hits in us a chunk, --records); volume (--gigabytes through
/// --memory).
void streams(const Settings& settings);
void stream_applications(const Settings& settings);
void stream_figures(const Settings& settings);
void stream_volume(const Settings& settings);
void stream_cost(const Settings& settings);
void stream_commands(const Settings& settings);
void stream_stages(const Settings& settings);
/// Rates of every kind of copy: --devices --sizes --kinds --repeat, --products on to have some
/// beside copies by runs on devices that aren't GPUs.
void copies(const Settings& settings);
/// A tile of the host's that all devices read, beside the copy to one: --devices --bytes --clock
/// virtual|real --repeat.
void forward(const Settings& settings);
/// Seconds of products by order, and what short sums reach: --devices --most (order) --repeat,
/// --description FILE to have them written to the machine's description.
void kernel_times(const Settings& settings);
/// Kernels of the linear algebra in the shapes that run, alone and two or three at once, and what
/// an operation costs: --devices --types (letters of sdcz) --most (order) --repeat, --description
/// FILE for what plans and simulations need of them.
void calibrate(const Settings& settings);
/// Packing and unpacking by layouts on one core, of a memcpy's rate: --bytes --repeat --segment
/// (bytes at once) --only (part of a name) --drawn (cases at random) --seed.
void message_packing(const Settings& settings);
/// Messages between two processes: --case pingpong|bandwidth --sizes (bytes, with commas between)
/// --repeat (batches) --pin (two cores).
void messages(const Settings& settings);
/// Messages between memory of devices of two processes, beside a copy within one: --devices (as an
/// engine's, or cuda: both on the first GPU) --sizes --repeat (batches).
void device_messages(const Settings& settings);
/// Seconds of a halo's exchange between two threads, each message started by itself, and by a plan:
/// --sizes (doubles of a border, with commas between) --repeat (batches).
void exchange_plans(const Settings& settings);
/// Collectives by the virtual clock: --machine FILE --nodes --ports --rate (bytes/s) --latency (ns)
/// --at host|devices --kind broadcast|reduce|allreduce --bytes --orders (by core, by node, random)
/// --algorithm --segment --leaders (else chosen).
void schedules(const Settings& settings);
/// What collectives of devices cost their hosts, counted in plans made for data of the host and of
/// devices; microseconds by the virtual clock: --count (devices) --bytes --rate (of each link).
void device_steps(const Settings& settings);
/// What another process does for them: --handles --sizes; prints what IpcFigure holds.
void copy_from_other_process(const Settings& settings);
/// The processor, its cores and the commit this was built from.
void describe(const Settings& settings);

}  // namespace quadriga::bench
