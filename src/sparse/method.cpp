// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/method.cpp: launches by their time, vectors by the rate of memory.
#include "sparse/method.h"

#include <fmt/format.h>
#include <quadriga/codelet.h>
#include <quadriga/error.h>

#include "sparse/kernels/one_reduction.h"

namespace quadriga::sparse {
namespace {

/// Of an iteration whose scalars are formed by the last blocks of threads: p = M*r + beta*p, the
/// product, and x and r; or all of the vectors at once, and the product.
constexpr double classic_launches = 3, other_launches = 2;
/// Vectors that pass the memory beside the matrix: 3 and 6, and 2 of the product.
constexpr double classic_passes = 11, product_passes = 2;

/// The accelerator whose memory is fastest, if the table tells of all of them; else null.
const Device* fastest(const Machine& machine) {
  constexpr double gigabyte = 1e9;
  const Cost cost = Cost::of_work(0, gigabyte);
  const Device* found = nullptr;
  double least = 0;
  for (const Device& each : machine.devices) {
    if (each.kind != DeviceKind::cuda && each.kind != DeviceKind::emulated) continue;
    if (!machine.has_kernel(each, cost.kernel)) return nullptr;
    const double seconds = machine.kernel_seconds(each, cost.kernel, cost.order, cost.volume);
    if (!found || seconds < least) {
      found = &each;
      least = seconds;
    }
  }
  return found;
}

double seconds_of(const Machine& machine, const Device& device, double launches, double bytes) {
  const Cost cost = Cost::of_work(0, bytes);
  return launches * machine.launch_seconds +
         machine.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
}

}  // namespace

MethodChoice choose_method(const Machine& machine, std::int64_t rows, DType dtype, CgMethod asked,
                           bool has_steps) {
  if (asked == CgMethod::classic) return {asked, "asked for"};
  if (asked != CgMethod::automatic) {
    require(!has_steps, fmt::format("{} iterations need an M of blocks of rows; expected the "
                                    "classic ones, or another M",
                                    name(asked)));
    return {asked, "asked for"};
  }
  if (has_steps) return {CgMethod::classic, "M is several steps"};
  const Device* const device = fastest(machine);
  if (!device) return {CgMethod::classic, "the machine's description has no rates of devices"};
  if (device->kind == DeviceKind::cuda)
    return {CgMethod::classic, "single-reduction iterations weren't measured on GPUs"};
  const double vector = static_cast<double>(rows) * static_cast<double>(size_of(dtype));
  const double classic = seconds_of(machine, *device, classic_launches, classic_passes * vector);
  const double single =
      seconds_of(machine, *device, other_launches,
                 (step_passes(CgMethod::single_reduction) + product_passes) * vector);
  constexpr double micro = 1e6;
  return {single < classic ? CgMethod::single_reduction : CgMethod::classic,
          fmt::format("beside the matrix, one {} takes {:.3g} us an iteration; single-reduction: "
                      "{:.3g} us",
                      device->name, micro * classic, micro * single)};
}

}  // namespace quadriga::sparse
