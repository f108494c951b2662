// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/scaled_times.cpp: a table of seconds by order, and how devices compare.
#include "device/cuda/scaled_times.h"

#include <array>
#include <string_view>

namespace quadriga::cuda {
namespace {

// One H200, CUDA 13.0: products from 1024 on sustained on full-entropy random data, the rest in
// short bursts.
constexpr Speed measured{9, 0, 132, 1.98e9};

struct Time {
  double order;
  double seconds;
};

constexpr std::array dgemm{Time{256, 7.71366e-06},  Time{512, 8.96279e-06},  Time{768, 2.54272e-05},
                           Time{1024, 4.33835e-05}, Time{2048, 0.000335544}, Time{4096, 0.0026279},
                           Time{8192, 0.0203991},   Time{16384, 0.16229}};
constexpr std::array sgemm{Time{1024, 6.43537e-05}, Time{2048, 0.000359637}, Time{4096, 0.00277935},
                           Time{8192, 0.0228779}, Time{16384, 0.163862}};
constexpr std::array syrk{Time{1024, 4.72579e-05}, Time{2048, 0.000165101}, Time{4096, 0.00138439}};
constexpr std::array trsm{Time{1024, 0.000127811}, Time{2048, 0.000377385}, Time{4096, 0.0019052}};
constexpr std::array potrf{Time{1024, 0.000442908}, Time{2048, 0.000879808}, Time{4096, 0.00186606},
                           Time{8192, 0.00747967}, Time{16384, 0.0363235}};

// Multiply-adds of a processor in a clock, tensor cores included.
struct Throughput {
  double of_double;
  double of_float;
};

Throughput throughput(const Speed& speed) {
  if (speed.major == 9) return {128, 128};
  if (speed.major == 10 && speed.minor == 0) return {64, 128};
  if (speed.major == 8 && speed.minor == 0) return {64, 64};
  if (speed.major == 7 && speed.minor == 0) return {32, 64};
  // Those made for other work compute in double at a 64th of the rate.
  return {2, 128};
}

template <std::size_t count>
void add(Machine& machine, std::string_view kernel, const std::string& column,
         const std::array<Time, count>& times, double factor) {
  auto& table = machine.kernels[std::string(kernel)][column];
  for (const Time& time : times) table[time.order] = time.seconds * factor;
}

}  // namespace

std::map<double, double> usual_sums() {
  return {{256, 0.78}, {512, 0.935}, {1024, 0.983}, {4096, 1}};
}

void add_rates(Machine& machine, const std::string& column, const Speed& speed) {
  const auto all = [](const Speed& of, double a_processor) {
    return of.processors * of.clock_hertz * a_processor;
  };
  const double slower_double =
      all(measured, throughput(measured).of_double) / all(speed, throughput(speed).of_double);
  const double slower_float =
      all(measured, throughput(measured).of_float) / all(speed, throughput(speed).of_float);
  // A complex multiplication is four real ones.
  for (const auto& [type, factor] :
       {std::pair('d', slower_double), std::pair('z', 4 * slower_double),
        std::pair('s', slower_float), std::pair('c', 4 * slower_float)}) {
    const bool is_double = type == 'd' || type == 'z';
    const auto name = [type = type](const char* kernel) { return type + std::string(kernel); };
    if (is_double)
      add(machine, name("gemm"), column, dgemm, factor);
    else
      add(machine, name("gemm"), column, sgemm, factor);
    add(machine, name("syrk"), column, syrk, factor);
    add(machine, name("trsm"), column, trsm, factor);
    add(machine, name("potrf"), column, potrf, factor);
  }
}

}  // namespace quadriga::cuda
