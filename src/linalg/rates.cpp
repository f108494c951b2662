// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/rates.cpp: measures product, update, solve and factorization on one core at a few
// orders.
#include "linalg/rates.h"

#include "base/log.h"
#include "base/number_type.h"
#include "device/kinds.h"
#include "linalg/kernels/blas_threads.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/tile.h"
#include "linalg/kernels/tile_elements.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

namespace quadriga::linalg {
namespace {

using kernels::Diag;
using kernels::KernelTile;
using kernels::Side;

constexpr std::string_view measured_column = "measured";
constexpr int kernel_count = 4;
constexpr std::array<kernels::Names, kernel_count> kernel_names{
    kernels::gemm_names, kernels::syrk_names, kernels::trsm_names, kernels::potrf_names};

using Times = std::map<double, double>;

double best_seconds(const std::function<void()>& work) {
  using std::chrono::steady_clock;
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto begin = steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(steady_clock::now() - begin).count());
  }
  return std::max(best, 1e-9);
}

template <class T>
class Measurement {
 public:
  explicit Measurement(int order)
      : a_(elements(order)), b_(elements(order)), c_(elements(order)), order_(order) {
    kernels::RandomMatrix random;
    random.hermitian = true;
    random.on_diagonal = order;
    kernels::fill_random(random, tile(a_));
    kernels::fill_random(random, tile(b_));
  }

  double seconds(int kernel) {
    switch (kernel) {
      case 0:
        return best_seconds([&] {
          kernels::gemm(Op::none, Op::conjugate, T(-1), tile(a_), tile(b_), T(1), tile(c_));
        });
      case 1:
        return best_seconds(
            [&] { kernels::herk(Uplo::lower, Op::none, -1, tile(a_), 1, tile(c_)); });
      case 2:
        return best_seconds([&] {
          kernels::trsm(Side::right, Uplo::lower, Op::conjugate, Diag::non_unit, T(1), tile(a_),
                        tile(b_));
        });
      default:
        return best_seconds([&] {
          c_ = a_;
          kernels::potrf(Uplo::lower, tile(c_));
        });
    }
  }

 private:
  static std::size_t elements(int order) {
    return static_cast<std::size_t>(order) * static_cast<std::size_t>(order);
  }
  KernelTile<T> tile(std::vector<T>& values) const {
    return {values.data(), order_, order_, order_};
  }

  std::vector<T> a_;
  std::vector<T> b_;
  std::vector<T> c_;
  int order_;
};

template <class T>
std::array<Times, kernel_count> measure() {
  kernels::use_one_blas_thread();
  const kernels::BlasCall call;
  std::array<Times, kernel_count> times;
  for (const int order : {16, 32, 64, 128, 256, 512}) {
    Measurement<T> measurement(order);
    for (int kernel = 0; kernel < kernel_count; ++kernel)
      times[static_cast<std::size_t>(kernel)][order] = measurement.seconds(kernel);
  }
  return times;
}

const std::array<Times, kernel_count>& measured(DType dtype) {
  static std::once_flag once[4];
  static std::array<Times, kernel_count> times[4];
  const auto index = static_cast<std::size_t>(dtype);
  std::call_once(once[index], [&] {
    log(LogLevel::info, "the machine has no table of kernel times: measuring them here");
    times[index] = with_number_type(dtype, []<class T>() { return measure<T>(); });
  });
  return times[index];
}

/// It is there for what needs the host, and computes nothing that takes long; or it stores tiles.
bool computes_nothing(const Device& device) {
  return properties_of(device.kind).only_stores ||
         (device.kind == DeviceKind::cpu && device.cores == 0);
}

/// Kernels of emulated devices share this computer's cores.
double slowdown(const Machine& machine) {
  const Machine host = Machine::host();
  const double cores = std::max(1, host.devices.front().cores);
  double streams = 0;
  for (const Device& device : machine.devices)
    streams += computes_nothing(device) ? 0 : device.kind == DeviceKind::cpu ? device.cores : 1;
  return std::max(1.0, streams / cores);
}

}  // namespace

Machine with_rates(Machine machine, DType dtype) {
  const bool is_complete = std::ranges::all_of(machine.devices, [&](const Device& device) {
    return std::ranges::all_of(kernel_names, [&](const auto& names) {
      return computes_nothing(device) ||
             machine.has_kernel(device, std::string(names[kernels::type_index(dtype)]));
    });
  });
  if (is_complete) return machine;  // Asking what this computer has takes longer.
  const double factor = slowdown(machine);
  for (Device& device : machine.devices) {
    if (computes_nothing(device)) continue;
    for (std::size_t kernel = 0; kernel < kernel_count; ++kernel) {
      const std::string name(kernel_names[kernel][kernels::type_index(dtype)]);
      if (machine.has_kernel(device, name)) continue;
      if (device.rates.empty()) device.rates = measured_column;
      for (const auto& [order, seconds] : measured(dtype)[kernel])
        machine.kernels[name][device.rates][order] = seconds * factor;
    }
  }
  return machine;
}

}  // namespace quadriga::linalg
