// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/method.cpp: launches by their time, vectors by the rate of memory.
#include "sparse/method.h"

#include <fmt/format.h>
#include <quadriga/codelet.h>
#include <quadriga/error.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/kinds.h"
#include "sparse/device_choice.h"
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
    if (!is_accelerator(each.kind)) continue;
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

/// What iterations run on: one device, or several among which rows are cut.
using Spread = std::span<const Device* const>;

/// Of so many bytes of the memory of all, each reading its share.
double seconds_to_read(const Machine& machine, Spread devices, double bytes) {
  const Cost cost = Cost::of_work(0, bytes);
  if (devices.size() == 1)
    return machine.kernel_seconds(*devices.front(), cost.kernel, cost.order, cost.volume);
  double rate = 0;
  for (const Device* each : devices)
    rate += 1 / machine.kernel_seconds(*each, cost.kernel, cost.order, cost.volume);
  return 1 / rate;
}

/// Between devices: for the sums of a product and of a step, which pipelined iterations form
/// together, while the next product runs.
double seconds_of_waiting(const MethodShape& shape, CgMethod method, const Machine& machine,
                          Spread devices, double round_trip) {
  if (method != CgMethod::pipelined) return 2 * round_trip;
  return std::max(0.0, round_trip - seconds_to_read(machine, devices, shape.matrix_bytes));
}

double seconds_of(const Machine& machine, Spread devices, double round_trip,
                  const MethodShape& shape, CgMethod method) {
  const double bytes = shape.matrix_bytes + passes_of(method) * vector_bytes(shape);
  double seconds =
      launches_of(method) * machine.launch_seconds + seconds_to_read(machine, devices, bytes);
  if (devices.size() > 1)
    seconds += seconds_of_waiting(shape, method, machine, devices, round_trip);
  const auto count = static_cast<std::int64_t>(devices.size());
  const MethodShape share{(shape.rows + count - 1) / count, shape.dtype,
                          shape.matrix_bytes / static_cast<double>(count)};
  for (const Device* each : devices)
    seconds = std::max(seconds, seconds_of_link(machine, *each, share, method));
  return seconds;
}

}  // namespace

void check_method(CgMethod asked, bool has_steps) {
  require(asked == CgMethod::classic || asked == CgMethod::automatic || !has_steps,
          fmt::format("{} iterations need an M of blocks of rows; expected the classic ones, or "
                      "another M",
                      name(asked)));
}

MethodChoice choose_method(const Machine& machine, const MethodShape& shape, CgMethod asked,
                           bool has_steps, std::span<const DeviceId> spread) {
  check_method(asked, has_steps);
  if (asked != CgMethod::automatic) return {asked, "asked for"};
  if (has_steps) return {CgMethod::classic, "M is several steps"};
  const Device* const device = fastest(machine);
  if (!device) return {CgMethod::classic, "the machine's description has no rates of devices"};
  std::vector<const Device*> devices{device};
  double round_trip = 0;
  if (spread.size() > 1) {
    devices.clear();
    for (const DeviceId each : spread) devices.push_back(&machine.devices[each]);
    round_trip = slowest_round_trip(machine, spread);
  }
  const double classic = seconds_of(machine, devices, round_trip, shape, CgMethod::classic);
  MethodChoice chosen{CgMethod::classic, {}};
  double least = (1 - least_share_saved) * classic;
  constexpr double micro = 1e6;
  const std::string where = devices.size() == 1 ? fmt::format("one {}", device->name)
                                                : fmt::format("{} devices", devices.size());
  chosen.reason = fmt::format("us an iteration of {}: classic {:.3g}", where, micro * classic);
  for (const CgMethod each : {CgMethod::single_reduction, CgMethod::pipelined}) {
    const double seconds = seconds_of(machine, devices, round_trip, shape, each);
    chosen.reason += fmt::format(", {} {:.3g}", name(each), micro * seconds);
    if (!(seconds < least)) continue;  // Figures that aren't any say nothing.
    least = seconds;
    chosen.method = each;
  }
  return chosen;
}

}  // namespace quadriga::sparse
