// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/random_program.h: random programs of tasks on tiles, run by an engine and one
// after another on plain arrays at once.
//
// Each task hashes what it reads and writes what follows from that, so that a task that sees an old
// or a torn content changes everything after it. Operands of mode commute and reduce are added to,
// modulo 2^32, and read by no task of that mode: their order can't matter. Many tasks have a
// workspace, in which nobody else may write while they run.
#pragma once

#include <quadriga/engine.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "device_homes.h"

namespace quadriga {

struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  DType dtype = DType::float64;
  std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(rows * cols) * size_of(dtype);
  }
  bool operator==(const Shape&) const = default;
};

/// Of a task.
constexpr std::size_t most_operands = 3;

/// How large and how mixed programs are.
struct ProgramOptions {
  int tasks = 60;
  std::size_t most_bytes = 4096;  ///< Of a tile.
  bool nested = false;            ///< Some tasks submit tasks on their own operands.
  bool costs = true;              ///< Codelets say what they cost.
  bool few_buffers = false;       ///< Homes are on devices for the most part; no partial results.
};

/// What a step of a program does.
struct Step {
  enum class Kind : std::uint8_t { submit, wait_data, wait_all, final, evict, remove } kind;
  int tile = -1;           ///< Of all but submit.
  std::vector<int> tiles;  ///< Of submit, with their modes.
  std::vector<Access> modes;
  std::uint64_t salt = 0;
  bool apart = false;  ///< Operands of mode reduce have partial results.
  int children = 0;    ///< Tasks that the task submits on its operands.
  SubmitOptions options;
};

class RandomProgram {
 public:
  RandomProgram(std::uint64_t seed, const ProgramOptions& options, int devices);

  /// Runs on an engine; empty, or what was wrong at which step.
  std::string run(const WrappedOptions& options);
  /// The same on one that others use before and after; nothing of the program stays there.
  std::string run(Engine& engine);
  /// Runs on an engine that meets faults: what isn't reported lost must be right, and every error
  /// must be of a fault's kind. `lost` counts the tiles that were.
  std::string run_despite_faults(const WrappedOptions& options, int& lost);
  /// The host's buffers without which no such program may get by: for all tiles that have no home,
  /// and the operands of a task.
  std::size_t least_host_memory() const;
  /// Writes that were renamed in the last run.
  std::uint64_t renamed() const { return renamed_; }

 private:
  struct Tile {
    Shape shape;
    bool homed = true;
    DeviceId device = no_device;  ///< Whose memory its home is, on emulated devices.
    bool keep = false;
    bool written = false;
    bool final = false;
    bool removed = false;
  };
  struct Place {
    std::byte* home = nullptr;        ///< ld x cols elements; the gaps hold a pattern.
    std::vector<std::byte> on_host;   ///< Holds them, if no device does.
    std::vector<std::byte> expected;  ///< rows x cols elements.
    Data data;
  };

  void add_tiles();
  void add_task();
  Access mode_for(const Tile& tile);
  void start(Engine& engine);
  Data add_homed(Engine& engine, std::size_t tile);
  void submit(Engine& engine, const Step& step);
  std::string carry_out(Engine& engine, const Step& step);
  std::string compare_home(int tile) const;
  std::string compare_all(Engine& engine);
  std::string compare_if_there(Engine& engine, int tile, int& lost);
  std::string carry_out_despite_faults(Engine& engine, const Step& step, int& lost);

  Random random_;
  ProgramOptions options_;
  int devices_;
  std::vector<Tile> tiles_;
  std::vector<Step> steps_;
  std::vector<Place> places_;
  DeviceHomes homes_;
  std::vector<Data> operands_;  ///< Of the tasks so far, for their children.
  std::uint64_t renamed_ = 0;
};

/// A machine of emulated accelerators that hold three of the largest tiles each, beside a CPU.
Machine small_machine(Random& random, int devices, int cores, std::size_t tile_bytes);

/// A program and what it runs on.
struct ProgramRun {
  WrappedOptions options;
  int devices = 0;  ///< Accelerators.
  RandomProgram program;
};
ProgramRun make_run(std::uint64_t seed, bool virtual_clock, bool nested = true);

/// The seeds of a test: `count` from `first`.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
};

/// Runs the program of a seed, from which everything about the run follows, on emulated
/// accelerators; empty, or what was wrong.
std::string run_on_devices(std::uint64_t seed, bool virtual_clock);
/// Before the first program: codelets have CUDA variants, which an adapter makes of the others.
void give_cuda_variants(Kernel (*adapter)(Kernel));
/// The same on GPUs, of which one may stand for several: programs of so many seeds, some on each
/// engine, for to make one takes long there. Ends early when the seconds are over; `done` counts.
std::string run_on_gpus(Seeds seeds, double most_seconds, std::uint64_t& done);
/// The program of a seed there, and what it and the others of its batch run on.
ProgramRun make_gpu_run(std::uint64_t seed);
/// The same on emulated accelerators, where half of the programs don't say what they cost: engines
/// learn that from those before.
std::string run_in_batches(Seeds seeds);
/// The same on the host's cores alone.
std::string run_on_host(std::uint64_t seed);

/// As the environment would have it: QUADRIGA_TEST_SEED alone, QUADRIGA_TEST_TIMES as many.
Seeds test_seeds(std::uint64_t first, std::uint64_t count);

}  // namespace quadriga
