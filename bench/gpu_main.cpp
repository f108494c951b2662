// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_main.cpp: the program quadriga-bench-gpu: linear algebra out of pinned host memory on
// GPUs beside CUDA's own libraries, one JSON object a line.
//
// Every run starts with no tile on a device and ends with the result at home; the ceiling is cuBLAS
// on resident tiles on as many GPUs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <quadriga/error.h>
#include <quadriga/linalg.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>

#include "device/factory.h"
#include "gpu.h"
#include "gpu_packing.h"
#include "gpu_parts.h"
#include "linalg/kernels/codelets.h"
#include "line.h"
#include "settings.h"

namespace quadriga::bench {
namespace {

using linalg::MatrixView;

Machine machine_of(const Settings& settings) {
  const long long gpus = settings.integer("gpus", 1);
  std::string list = fmt::format("cuda:{}", gpus);
  if (const std::string memory = settings.text("memory"); !memory.empty())
    list += ",memory=" + memory;
  if (const std::string streams = settings.text("streams"); !streams.empty())
    list += ",streams=" + streams;
  Machine machine = Machine::parse(list);
  // Times of kernels instead of those that discovery supposes.
  if (const std::string rates = settings.text("rates"); !rates.empty())
    machine.kernels = Machine::from_file(rates).kernels;
  return machine;
}

EngineOptions options_of(const Settings& settings) {
  EngineOptions options;
  options.machine = machine_of(settings);
  options.trace = !settings.text("trace").empty();
  return options;
}

bool is_pinned(const Settings& settings) { return settings.text("pinned", "on") == "on"; }

MatrixView view(const HostMatrix& matrix) {
  return MatrixView::columns(matrix.data(), matrix.order(), matrix.order(), DType::float64);
}

double cube(long long n) { return std::pow(static_cast<double>(n), 3); }

/// Seconds of processor time of this process so far.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Timing {
  std::vector<double> seconds;
  double cores = 0;       // Busy in the last run.
  long long counted = 1;  // Runs since the engine's counters were reset.
};

template <class Work>
Timing time_runs(long long repeat, Work work) {
  Timing timing;
  timing.counted = repeat;
  for (long long i = 0; i < repeat; ++i) {
    const double processor = processor_seconds();
    const double begin = now();
    work();
    timing.seconds.push_back(now() - begin);
    timing.cores = (processor_seconds() - processor) / timing.seconds.back();
  }
  return timing;
}

void report(Line& line, const Engine& engine, const Settings& settings, const Timing& timing,
            double flops) {
  double peers = 0;
  for (const LinkCounters& link : engine.counters().links)
    if (link.source != host_space && link.target != host_space)
      peers += static_cast<double>(link.bytes);
  const double runs = static_cast<double>(timing.counted);
  line.add("gpus", static_cast<double>(settings.integer("gpus", 1)))
      .add("n", static_cast<double>(settings.integer("n", 8192)))
      .add("tile", static_cast<double>(settings.integer("tile", 0, 0)))
      .add("pinned", settings.text("pinned", "on"))
      .add("tflops", flops / median(timing.seconds) * 1e-12)
      .add("best_tflops", flops / *std::ranges::min_element(timing.seconds) * 1e-12)
      .add("seconds", median(timing.seconds))
      .add("runs", fmt::format("{:.5f}", fmt::join(timing.seconds, " ")))
      .add("busy_cores", timing.cores)
      .add("host_gb", static_cast<double>(engine.counters().host_bytes()) * 1e-9 / runs)
      .add("peer_gb", peers * 1e-9 / runs);
}

void write_trace(const Engine& engine, const Settings& settings) {
  const std::string path = settings.text("trace");
  if (!path.empty()) std::ofstream(path) << engine.trace_json();
}

void gemm(const Settings& settings) {
  Engine engine(options_of(settings));
  const long long n = settings.integer("n", 8192);
  linalg::Options options;
  options.tile = settings.integer("tile", 0, 0);
  const HostMatrix a(n, is_pinned(settings));
  const HostMatrix b(n, is_pinned(settings));
  const HostMatrix c(n, is_pinned(settings));
  fill(engine, a, 1, false);
  fill(engine, b, 2, false);
  const auto multiply = [&] {
    linalg::matmul(engine, 1.0, view(a), linalg::Op::none, view(b), linalg::Op::none, 0.0, view(c),
                   options);
  };
  multiply();
  engine.reset_counters();
  const Timing timing = time_runs(settings.integer("repeat", 3), multiply);
  Line line("gemm");
  report(line, engine, settings, timing, 2 * cube(n));
  line.add("error", product_error(a, b, c)).print();
  write_trace(engine, settings);
  const int block = static_cast<int>(settings.integer("xt", 0, 0));
  if (block == 0) return;
  const double seconds = xt_gemm(static_cast<int>(settings.integer("gpus", 1)), block, a, b, c, 2);
  Line("cublasxt gemm")
      .add("gpus", static_cast<double>(settings.integer("gpus", 1)))
      .add("n", static_cast<double>(n))
      .add("block", block)
      .add("best_tflops", 2 * cube(n) / seconds * 1e-12)
      .print();
}

void potrf(const Settings& settings) {
  Engine engine(options_of(settings));
  const long long n = settings.integer("n", 8192);
  linalg::Options options;
  options.tile = settings.integer("tile", 0, 0);
  // Half the memory: the factor takes A's place, and each run begins with A made anew.
  const bool in_place = settings.text("in-place", "off") == "on";
  const HostMatrix a(n, is_pinned(settings));
  const std::optional<HostMatrix> apart =
      in_place ? std::nullopt : std::optional<HostMatrix>(std::in_place, n, is_pinned(settings));
  const HostMatrix& factor = in_place ? a : *apart;
  const auto prepare = [&] { fill(engine, a, 3, true); };
  const auto factorize = [&] {
    linalg::cholesky(engine, view(a), view(factor), linalg::Uplo::lower, linalg::Other::leave,
                     options);
  };
  prepare();
  const FactorCheck check(a);
  factorize();
  Timing timing;
  for (long long i = 0; i < settings.integer("repeat", 3); ++i) {
    if (in_place) prepare();
    if (in_place || i == 0) engine.reset_counters();
    const Timing once = time_runs(1, factorize);
    timing.seconds.push_back(once.seconds.front());
    timing.cores = once.cores;
    timing.counted = in_place ? 1 : i + 1;
  }
  Line line("potrf");
  report(line, engine, settings, timing, cube(n) / 3);
  line.add("error", check.error(factor)).print();
  write_trace(engine, settings);
}

void references(const Settings& settings) {
  const int gpus = static_cast<int>(settings.integer("gpus", 1));
  const long long n = settings.integer("n", 8192);
  const int repeat = static_cast<int>(settings.integer("repeat", 2));
  const double seconds = static_cast<double>(settings.integer("seconds", 2));
  Line("cublas gemm, resident")
      .add("gpus", gpus)
      .add("tile", 8192)
      .add("tflops", resident_gemm(gpus, 8192, seconds) * 1e-12)
      .print();
  if (gpus == 1)
    Line("cusolver potrf, resident")
        .add("n", static_cast<double>(n))
        .add("best_tflops", cube(n) / 3 / resident_potrf(n, repeat) * 1e-12)
        .print();
  const int block = static_cast<int>(settings.integer("mg", 512));
  Line("cusolvermg potrf, resident")
      .add("gpus", gpus)
      .add("n", static_cast<double>(n))
      .add("block", block)
      .add("best_tflops", cube(n) / 3 / mg_potrf(gpus, block, n, repeat) * 1e-12)
      .print();
}

/// Nanoseconds of a tiny kernel by the backend alone, some tens queued at a time.
double backend_launch(const Machine& machine, long long count) {
  const auto backend = make_backend(machine);
  const StreamId stream = backend->create_stream(0, StreamKind::compute);
  std::byte* const memory = backend->allocate(0, sizeof(double));
  const View view{memory, 1, 1, 1, DType::float64};
  const kernels::ScaleParams params{{1.0000001, 0}, {}};
  Launch launch;
  launch.kernel = &kernels::scale_codelet(DType::float64).cuda;
  launch.arguments.operands = {&view, 1};
  launch.arguments.params = std::as_bytes(std::span(&params, 1));
  constexpr long long most_queued = 32;
  std::array<Completion, most_queued> ended;
  long long queued = 0;
  const double begin = now();
  for (long long i = 0; i < count || queued > 0;) {
    for (; i < count && queued < most_queued; ++i, ++queued) backend->launch(stream, launch);
    queued -= static_cast<long long>(backend->next_completion(ended, never));
  }
  const double seconds = now() - begin;
  backend->deallocate(0, memory);
  return seconds / static_cast<double>(count) * 1e9;
}

/// A chain of tiny kernels through the engine, by the backend alone, and as bare launches.
void chain(const Settings& settings) {
  Engine engine(options_of(settings));
  const long long count = settings.integer("n", 10000);
  double value = 1;
  const Data data = engine.data(&value, 1, 1, 1, DType::float64);
  const kernels::ScaleParams params{{1.0000001, 0}, {}};
  std::vector<double> seconds;
  double cores = 0;
  for (int run = 0; run < 4; ++run) {
    const double processor = processor_seconds();
    const double begin = now();
    for (long long i = 0; i < count; ++i)
      engine.submit(kernels::scale_codelet(DType::float64), {{data, Access::update}}, params);
    engine.wait();
    if (run > 0) seconds.push_back(now() - begin);
    cores = (processor_seconds() - processor) / (now() - begin);
  }
  Line("chain")
      .add("tasks", static_cast<double>(count))
      .add("nanoseconds_a_task", median(seconds) / static_cast<double>(count) * 1e9)
      .add("backend_nanoseconds", backend_launch(options_of(settings).machine.value(), count))
      .add("bare_launch_nanoseconds", bare_launch(static_cast<int>(count)))
      .add("busy_cores", cores)
      .print();
  engine.remove(data);
}

struct Command {
  std::string_view name;
  void (*run)(const Settings& settings);
};

constexpr std::array commands{
    Command{"gemm", gemm},
    Command{"potrf", potrf},
    Command{"references", references},
    Command{"chain", chain},
    Command{"kernels",
            [](const Settings& settings) { kernel_rates(machine_of(settings), settings); }},
    Command{"copies",
            [](const Settings& settings) { engine_copies(machine_of(settings), settings); }},
    Command{"small",
            [](const Settings& settings) { small_problems(machine_of(settings), settings); }},
    Command{"resident",
            [](const Settings& settings) { resident_problems(machine_of(settings), settings); }},
    Command{"streams",
            [](const Settings& settings) { stream_rates(machine_of(settings), settings); }},
    Command{"stream-commands",
            [](const Settings& settings) { stream_command_costs(machine_of(settings), settings); }},
    Command{"by-hand",
            [](const Settings& settings) {
              by_hand_rates(settings, [](int gpus) {
                return Machine::parse(fmt::format("cuda:{},memory=8GiB", gpus));
              });
            }},
    Command{"orders",
            [](const Settings& settings) {
              drawn_orders(settings,
                           [](int gpus) { return Machine::parse(fmt::format("cuda:{}", gpus)); });
            }},
    Command{"pack", pack_rates},
    Command{"ends", [](const Settings& settings) { gpu_ends(machine_of(settings), settings); }},
    Command{"queue", [](const Settings& settings) {
              queue_rates(settings,
                          [](int gpus) { return Machine::parse(fmt::format("cuda:{}", gpus)); });
            }}};

void run(int count, char** words) {
  std::string names;
  for (const Command& command : commands) {
    if (count > 1 && command.name == words[1]) {
      command.run(Settings(count - 2, words + 2));
      return;
    }
    names += fmt::format(" {}", command.name);
  }
  fail(Errc::invalid_argument,
       fmt::format("usage: quadriga-bench-gpu COMMAND [--name value]...; the commands are{}",
                   names));
}

}  // namespace
}  // namespace quadriga::bench

int main(int count, char** words) {
  try {
    quadriga::bench::run(count, words);
  } catch (const quadriga::Error& error) {
    fmt::print(stderr, "quadriga-bench-gpu: {}\n", error.what());
    if (error.code() == quadriga::Errc::unavailable) return 3;
    return error.code() == quadriga::Errc::invalid_argument ? 2 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "quadriga-bench-gpu: {}\n", error.what());
    return 1;
  }
  return 0;
}
