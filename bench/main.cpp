// SPDX-License-Identifier: BSD-3-Clause
// bench/main.cpp: the program quadriga-bench: measures one thing and prints a JSON object a line.
//
// `quadriga bench` calls it, adds references and shows tables; by itself it serves profilers.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <array>
#include <cstdio>
#include <exception>
#include <new>

#include "benchmarks.h"

namespace quadriga::bench {
namespace {

struct Command {
  std::string_view name;
  void (*run)(const Settings& settings);
};

constexpr std::array commands{
    Command{"tasks", empty_tasks},
    Command{"malloc", allocations},
    Command{"driver", driver},
    Command{"ends", ends},
    Command{"memory", resident_memory},
    Command{"gemm", host_gemm},
    Command{"potrf", host_potrf},
    Command{"simulated", simulated},
    Command{"copies", copies},
    Command{"machine", describe},
    Command{"ipc", copy_from_other_process},
    Command{"decide", decide},
    Command{"replay", replay_log},
    Command{"plans", plans},
    Command{"streams", streams},
    Command{"kernels", kernel_times},
    Command{"pack", message_packing},
    Command{"messages", messages},
    Command{"exchange", exchange_plans},
    Command{"schedules", schedules},
    Command{"device-messages", device_messages},
    Command{"calibrate", calibrate},
    Command{"division", division},
    Command{"forward", forward},
    Command{"papers", papers},
    Command{"policy", ready_tasks},
    Command{"unrolled", unrolled},
    Command{"renaming", renaming},
    Command{"device-steps", device_steps},
    Command{"cpp-register-again", register_again},
    Command{"cpp-on-host", access_on_host},
};

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
       fmt::format("usage: quadriga-bench COMMAND [--name value]...; the commands are{}", names));
}

}  // namespace
}  // namespace quadriga::bench

int main(int count, char** words) {
  try {
    quadriga::bench::run(count, words);
  } catch (const quadriga::Error& error) {
    fmt::print(stderr, "quadriga-bench: {}\n", error.what());
    if (error.code() == quadriga::Errc::unavailable) return 3;
    return error.code() == quadriga::Errc::invalid_argument ? 2 : 1;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "quadriga-bench: this machine hasn't memory enough for it\n");
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "quadriga-bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
