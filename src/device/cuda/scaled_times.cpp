// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/scaled_times.cpp: how the processors of devices compare.
#include "device/cuda/scaled_times.h"

#include <string>
#include <utility>

#include "device/reference_machine.h"

namespace quadriga::cuda {
namespace {

// Multiply-adds of a processor in a clock, tensor cores included: the architecture's, by NVIDIA's
// white papers.
struct Throughput {
  double of_double;
  double of_float;
};

Throughput throughput(const DeviceSpeed& speed) {
  if (speed.major == 9) return {128, 128};
  if (speed.major == 10 && speed.minor == 0) return {64, 128};
  if (speed.major == 8 && speed.minor == 0) return {64, 64};
  if (speed.major == 7 && speed.minor == 0) return {32, 64};
  // Those made for other work compute in double at a 64th of the rate.
  return {2, 128};
}

void add(Machine& machine, const std::string& kernel, const std::string& column,
         const std::string& like, double factor) {
  const Machine& reference = reference_machine();
  for (const auto& [order, seconds] :
       reference.kernels.at(like).at(reference.devices.front().rates))
    machine.kernels[kernel][column][order] = seconds * factor;
}

}  // namespace

void add_rates(Machine& machine, const std::string& column, const DeviceSpeed& speed) {
  const DeviceSpeed& measured = reference_speed();
  const auto all = [](const DeviceSpeed& of, double a_processor) {
    return of.processors * of.clock_hertz * a_processor;
  };
  const double slower_double =
      all(measured, throughput(measured).of_double) / all(speed, throughput(speed).of_double);
  const double slower_float =
      all(measured, throughput(measured).of_float) / all(speed, throughput(speed).of_float);
  if (speed.memory_bytes_a_second > 0) {  // Some drivers don't tell.
    add(machine, "flops", column, "flops", slower_double);
    add(machine, "bytes", column, "bytes",
        measured.memory_bytes_a_second / speed.memory_bytes_a_second);
  }
  // A complex multiplication is four real ones.
  for (const auto& [type, factor] :
       {std::pair('d', slower_double), std::pair('z', 4 * slower_double),
        std::pair('s', slower_float), std::pair('c', 4 * slower_float)}) {
    const bool is_double = type == 'd' || type == 'z';
    const auto name = [type = type](const char* kernel) { return type + std::string(kernel); };
    add(machine, name("gemm"), column, is_double ? "dgemm" : "sgemm", factor);
    for (const char* const kernel : {"syrk", "trsm", "potrf"})
      add(machine, name(kernel), column, 'd' + std::string(kernel), factor);
  }
}

}  // namespace quadriga::cuda
