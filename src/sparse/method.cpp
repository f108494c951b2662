// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/method.cpp: launches by their time, vectors by the rate of memory.
#include "sparse/method.h"

#include <fmt/format.h>
#include <quadriga/codelet.h>
#include <quadriga/error.h>

#include <algorithm>

#include "sparse/kernels/one_reduction.h"

namespace quadriga::sparse {
namespace {

/// Kernels of an iteration whose scalars the last blocks of threads form: p = M*r + beta*p, the
/// product, and x and r; of other methods all vectors at once, and the product.
constexpr double launches_of(CgMethod method) noexcept {
  return method == CgMethod::classic ? 3 : 2;
}

/// Vectors that pass the memory beside the matrix: those of steps, and 2 of the product.
constexpr double passes_of(CgMethod method) noexcept {
  constexpr double classic_steps = 9, of_product = 2;
  return of_product + (method == CgMethod::classic ? classic_steps : step_passes(method));
}

double vector_bytes(const MethodShape& shape) noexcept {
  return static_cast<double>(shape.rows) * static_cast<double>(size_of(shape.dtype));
}

/// Of an iteration: what differs less isn't told apart by a model of bytes and launches.
constexpr double least_share_saved = 0.03;

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

/// Of what the device's memory can't hold beside the rest, which comes from the host each time.
double seconds_of_link(const Machine& machine, const Device& device, const MethodShape& shape,
                       CgMethod method) {
  constexpr double classic_vectors = 5;  // p, q, r, x and M's diagonal
  const double count = classic_vectors + static_cast<double>(carried_vectors(method));
  const double bytes = shape.matrix_bytes + count * vector_bytes(shape);
  const double over = bytes - static_cast<double>(device.memory_bytes);
  if (device.memory_bytes <= 0 || over <= 0 || !machine.route(host_space, device.space)) return 0;
  return machine.copy_seconds(host_space, device.space, over);
}

double seconds_of(const Machine& machine, const Device& device, const MethodShape& shape,
                  CgMethod method) {
  const Cost cost = Cost::of_work(0, shape.matrix_bytes + passes_of(method) * vector_bytes(shape));
  const double on_device = launches_of(method) * machine.launch_seconds +
                           machine.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
  return std::max(on_device, seconds_of_link(machine, device, shape, method));
}

}  // namespace

void check_method(CgMethod asked, bool has_steps) {
  require(asked == CgMethod::classic || asked == CgMethod::automatic || !has_steps,
          fmt::format("{} iterations need an M of blocks of rows; expected the classic ones, or "
                      "another M",
                      name(asked)));
}

MethodChoice choose_method(const Machine& machine, const MethodShape& shape, CgMethod asked,
                           bool has_steps) {
  check_method(asked, has_steps);
  if (asked != CgMethod::automatic) return {asked, "asked for"};
  if (has_steps) return {CgMethod::classic, "M is several steps"};
  const Device* const device = fastest(machine);
  if (!device) return {CgMethod::classic, "the machine's description has no rates of devices"};
  const double classic = seconds_of(machine, *device, shape, CgMethod::classic);
  MethodChoice chosen{CgMethod::classic, {}};
  double least = (1 - least_share_saved) * classic;
  constexpr double micro = 1e6;
  chosen.reason =
      fmt::format("us an iteration of one {}: classic {:.3g}", device->name, micro * classic);
  for (const CgMethod each : {CgMethod::single_reduction, CgMethod::pipelined}) {
    const double seconds = seconds_of(machine, *device, shape, each);
    chosen.reason += fmt::format(", {} {:.3g}", name(each), micro * seconds);
    if (!(seconds < least)) continue;  // Figures that aren't any say nothing.
    least = seconds;
    chosen.method = each;
  }
  return chosen;
}

}  // namespace quadriga::sparse
