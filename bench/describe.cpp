// SPDX-License-Identifier: BSD-3-Clause
// bench/describe.cpp: where and from what the benchmarks run.
#include <quadriga/machine.h>

#include <fstream>
#include <string>

#include "benchmarks.h"
#include "commit.h"
#include "line.h"

namespace quadriga::bench {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

void describe(const Settings&) {
  Line("machine")
      .add("cpu", processor())
      .add("cores", Machine::host().devices.front().cores)
      .add("commit", built_from())
      .print();
}

}  // namespace quadriga::bench
