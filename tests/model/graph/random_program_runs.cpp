// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/random_program_runs.cpp: machines for random programs, and running them by
// their seeds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "memory/spill.h"
#include "model/graph/random_program.h"

namespace quadriga {
namespace {

/// Columns of tiles are padded as each device wants them, for half of the machines.
void pad_columns(Machine& machine, Random random) {
  if (random.chance(0.5)) return;
  for (Device& device : machine.devices) {
    if (device.kind == DeviceKind::cpu) continue;
    device.pitch_alignment = std::size_t{1} << random.below(8);
    device.memory_bytes = device.memory_bytes / 8 * 9;
  }
}

/// Half of the engines may rename, within memory for a few tiles or for all.
std::size_t renaming_bytes(std::uint64_t seed, std::size_t tile_bytes) {
  Random own(mix(seed ^ 0x7e4a));
  if (own.chance(0.5)) return 0;
  return tile_bytes << (own.chance(0.5) ? 0 : own.below(10));
}

constexpr std::uint64_t batch = 100;  ///< Programs on one engine.

ProgramRun make_batch_run(std::uint64_t seed, DeviceKind kind) {
  Random random(mix(seed / batch));
  ProgramOptions program_options;
  program_options.most_bytes = std::size_t{2048} << random.below(3);
  const int devices = 1 + static_cast<int>(random.below(4));
  const int cores = static_cast<int>(random.below(3));
  WrappedOptions options;
  options.machine = small_machine(random, devices, cores, program_options.most_bytes);
  pad_columns(*options.machine, Random(mix(seed / batch + 1)));
  for (Device& device : options.machine->devices)
    if (device.kind == DeviceKind::emulated) device.kind = kind;
  options.policy = random.chance(0.5) ? "affinity" : "steal";
  options.seed = seed;
  options.window = random.chance(0.5) ? 4096 : 16 + random.below(48);
  options.renaming_bytes = renaming_bytes(seed / batch, program_options.most_bytes);
  options.host_memory = std::size_t{1} << 30;
  // A device's callbacks, which run bodies there, may not submit.
  Random own(mix(seed));
  program_options.tasks = 50 + static_cast<int>(own.below(40));
  program_options.costs = own.chance(0.5);
  return {options, devices, RandomProgram(own(), program_options, devices + (cores > 0))};
}

std::string run_batches(Seeds seeds, DeviceKind kind, double most_seconds, std::uint64_t& done) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until =
      Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * most_seconds));
  std::optional<Engine> engine;
  for (done = 0; done < seeds.count && Clock::now() < until; ++done) {
    const std::uint64_t seed = seeds.first + done;
    ProgramRun run = make_batch_run(seed, kind);
    if (!engine || seed % batch == 0) {
      engine.reset();
      engine.emplace(run.options);
    }
    if (std::string wrong = run.program.run(*engine); !wrong.empty())
      return fmt::format("seed {}: {}", seed, wrong);
  }
  return {};
}

}  // namespace

Machine small_machine(Random& random, int devices, int cores, std::size_t tile_bytes) {
  Machine machine =
      Machine::parse(fmt::format("emulated:{},memory=1MiB,h2d=2GB/s,d2h=2GB/s,peer={}", devices,
                                 random.chance(0.5) ? "4GB/s" : "off"));
  // Some pairs of peers are joined, others not.
  if (random.chance(0.5))
    std::erase_if(machine.routes, [&](const Route& route) {
      return route.from != host_space && route.to != host_space && random.chance(0.4);
    });
  for (Device& device : machine.devices) {
    device.memory_bytes = 3 * tile_bytes;
    device.compute_streams = 1 + static_cast<int>(random.below(3));
  }
  if (cores > 0) {
    Device cpu;
    cpu.name = "cpu";
    cpu.cores = cores;
    cpu.rates = "cpu";
    machine.devices.push_back(cpu);
  }
  machine.kernels["mix"]["emulated"] = {{1, 1e-7}};
  machine.kernels["mix"]["cpu"] = {{1, 3e-7}};
  machine.kernels["mix"][""] = {{1, 3e-7}};
  return machine;
}

ProgramRun make_run(std::uint64_t seed, bool virtual_clock, bool nested) {
  Random random(mix(seed));
  ProgramOptions program_options;
  program_options.tasks = 50 + static_cast<int>(random.below(40));
  program_options.nested = nested;
  program_options.most_bytes = std::size_t{2048} << random.below(3);
  const int devices = 1 + static_cast<int>(random.below(4));
  const int cores = static_cast<int>(random.below(3));
  WrappedOptions options;
  options.machine = small_machine(random, devices, cores, program_options.most_bytes);
  pad_columns(*options.machine, Random(mix(seed + 1)));
  options.policy = random.chance(0.5) ? "affinity" : "steal";
  options.seed = seed;
  options.virtual_clock = virtual_clock;
  options.protect = virtual_clock && random.chance(0.25);
  options.window = random.chance(0.5) ? 4096 : 16 + random.below(48);
  program_options.few_buffers = Random(seed).chance(0.3);
  RandomProgram program(random(), program_options, devices + (cores > 0));
  if (!program_options.few_buffers)
    options.renaming_bytes = renaming_bytes(seed, program_options.most_bytes);
  options.host_memory =
      program_options.few_buffers ? program.least_host_memory() : std::size_t{1} << 30;
  return {options, devices, std::move(program)};
}

std::size_t RandomProgram::least_host_memory() const {
  std::size_t bytes = most_operands * Spill::rounded(options_.most_bytes / 8 * 9);
  for (const Tile& tile : tiles_)
    if (!tile.homed) bytes += Spill::rounded(tile.shape.bytes() / 8 * 9);
  return bytes;
}

std::string RandomProgram::run(const WrappedOptions& options) {
  Engine engine(EngineAccess::make(homes_.around(options)));
  return run(engine);
}

std::string run_on_devices(std::uint64_t seed, bool virtual_clock) {
  ProgramRun run = make_run(seed, virtual_clock);
  return run.program.run(run.options);
}

ProgramRun make_gpu_run(std::uint64_t seed) { return make_batch_run(seed, DeviceKind::cuda); }

std::string run_on_gpus(Seeds seeds, double most_seconds, std::uint64_t& done) {
  return run_batches(seeds, DeviceKind::cuda, most_seconds, done);
}

std::string run_in_batches(Seeds seeds) {
  std::uint64_t done = 0;
  return run_batches(seeds, DeviceKind::emulated, 1e6, done);
}

std::string run_on_host(std::uint64_t seed) {
  Random random(mix(seed));
  WrappedOptions options;
  options.devices = fmt::format("cpu:{}", 1 + random.below(3));
  options.policy = random.chance(0.5) ? "affinity" : "steal";
  options.window = random.chance(0.5) ? 4096 : 16 + random.below(48);
  const ProgramOptions program_options{.nested = true};
  options.renaming_bytes = renaming_bytes(seed, program_options.most_bytes);
  RandomProgram program(random(), program_options, 1);
  return program.run(options);
}

Seeds test_seeds(std::uint64_t first, std::uint64_t count) {
  if (const char* const seed = std::getenv("QUADRIGA_TEST_SEED"))
    return {std::strtoull(seed, nullptr, 10), 1};
  if (const char* const other = std::getenv("QUADRIGA_TEST_FIRST"))
    first = std::strtoull(other, nullptr, 10);
  const char* const times = std::getenv("QUADRIGA_TEST_TIMES");
  return {first, times ? count * std::strtoull(times, nullptr, 10) : count};
}

}  // namespace quadriga
