// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/move.cpp: gather, scatter and compute, on the host's view of a tile.
#include "linalg/move.h"

#include "device/host_move.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/source.h"
#include "linalg/view.h"
#include "schedule/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quadriga::linalg {
namespace {

MatrixView whole(const View& tile) {
  return MatrixView::columns(tile.data, tile.rows, tile.cols, tile.dtype,
                             std::max<std::int64_t>(tile.ld, 1));
}

MatrixView place_of(const MoveParams& params, const View& tile) {
  return part(params.origin->view, params.row, params.col, tile.rows, tile.cols);
}

void read_source(const MoveParams& params, const View& tile) {
  const Origin& origin = *params.origin;
  std::unique_lock lock(origin.one_at_a_time, std::defer_lock);
  if (origin.source->host_only) lock.lock();
  if (!origin.transposed) return origin.source->read(params.row, params.col, tile);
  const std::unique_ptr<std::byte[]> buffer(new std::byte[bytes_of(tile)]);
  const View turned{buffer.get(), tile.cols, tile.rows, tile.cols, tile.dtype};
  origin.source->read(params.col, params.row, turned);
  copy(whole(turned).transposed(), whole(tile));
}

void compute(const Arguments& arguments) {
  const auto params = arguments.param<MoveParams>();
  const View& tile = arguments.operands[0];
  read_source(params, tile);
  if (params.origin->conjugate) conjugate(whole(tile));
  if (params.origin->check_finite && !finite(whole(tile)))
    fail(Errc::invalid_argument,
         fmt::format("the source returned NaN or infinity in the tile that begins at ({}, {})",
                     params.row, params.col));
}

void gather(const Arguments& arguments) {
  const auto params = arguments.param<MoveParams>();
  const View& tile = arguments.operands[0];
  copy(place_of(params, tile), whole(tile), params.origin->conjugate);
}

void scatter(const Arguments& arguments) {
  const auto params = arguments.param<MoveParams>();
  const View& tile = arguments.operands[0];
  copy(whole(tile), place_of(params, tile), params.origin->conjugate);
}

/// As kernels::cost_of_elements, for the first operand; known on any host that devices copy from.
Cost cost_of_move(const Arguments& arguments) {
  const View& tile = arguments.operands.front();
  const double elements = static_cast<double>(tile.rows) * static_cast<double>(tile.cols);
  return {host_moves[kernels::type_index(tile.dtype)].cost, std::sqrt(elements),
          elements * kernels::volume_of_a_move};
}

Codelet make(const char* name, std::vector<Access> signature, void (*body)(const Arguments&),
             bool host_only) {
  Codelet codelet;
  codelet.name = name;
  codelet.access = std::move(signature);
  codelet.cpu = body;
  codelet.cost = cost_of_move;
  codelet.host_only = host_only;
  return codelet;
}

const Codelet& compute_codelet(bool host_only) {
  static const Codelet anywhere = make("compute", {Access::write}, compute, false);
  static const Codelet on_host = make("compute_on_host", {Access::write}, compute, true);
  return host_only ? on_host : anywhere;
}

}  // namespace

void submit_compute(Run& run, const MoveParams& params, Data tile, SubmitOptions where) {
  const Origin& origin = *params.origin;
  const auto* const known = dynamic_cast<const CovarianceSource*>(origin.source);
  if (known && !origin.transposed) {
    const kernels::CovarianceTile place{&known->values(), params.row, params.col};
    run.submit(kernels::covariance_codelet(known->dtype), {{tile, Access::write}}, place, where);
    return;
  }
  const auto has_own_variants = [](const Device& device) { return queues(device.kind); };
  const bool on_host = origin.source->host_only ||
                       std::ranges::any_of(run.engine().machine().devices, has_own_variants);
  if (on_host) where.owner = where.device = no_device;
  run.submit(compute_codelet(on_host), {{tile, Access::write}}, params, where);
}

const Codelet& gather_codelet() {
  static const Codelet codelet = make("gather", {Access::write, Access::read}, gather, true);
  return codelet;
}

const Codelet& scatter_codelet() {
  static const Codelet codelet = make("scatter", {Access::read, Access::update}, scatter, true);
  return codelet;
}

}  // namespace quadriga::linalg
