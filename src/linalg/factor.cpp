// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/factor.cpp: making factors, asking them for what they are, taking them apart.
#include "linalg/factor.h"

#include "device/kinds.h"
#include "engine/engine_access.h"
#include "engine/named_call.h"
#include "linalg/call_plan.h"
#include "linalg/check.h"
#include "linalg/kernels/codelets.h"
#include "linalg/operand_guard.h"
#include "linalg/resident.h"
#include "linalg/tile_size.h"
#include "linalg/view.h"

#include <fmt/format.h>

namespace quadriga::linalg {

FactorTiles::FactorTiles(Engine& engine, Tiling tiling, DType dtype, Uplo stored,
                         const MatrixView& home)
    : Tiles(tiling, tiling, dtype), engine_(engine), let_go_(engine), stored_(stored), home_(home) {
  const auto count = static_cast<std::size_t>(tiling.count());
  tiles_.resize(count * (count + 1) / 2);
}

FactorTiles::~FactorTiles() {
  let_go_.call([&engine = engine_, tiles = std::move(tiles_), discard = discard_ || !has_home()] {
    try {
      engine.remove(tiles, discard);
    } catch (const std::exception&) {
      // A copy home failed; the engine has noted it.
    }
  });
}

Data FactorTiles::tile(std::int64_t i, std::int64_t j) {
  Data& data = tiles_[index(i, j)];
  if (data) return data;
  const std::int64_t down = rows().length(i);
  const std::int64_t right = cols().length(j);
  data = has_home()
             ? register_tile(engine_, part(home_, rows().first(i), cols().first(j), down, right),
                             {true})
             : engine_.temporary(down, right, dtype(), {true});
  return data;
}

void FactorTiles::bring_home() const {
  TaskGroup none;
  std::vector<Data> all;
  for_each([&](Data data) { all.push_back(data); });
  EngineAccess::wait(engine_, none, all);
}

std::vector<DeviceId> FactorTiles::holders() const {
  std::vector<DeviceId> holders(tiles_.size(), no_device);
  const auto& devices = engine_.machine().devices;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].space == host_space || !is_accelerator(devices[d].kind)) continue;
    const std::vector<bool> here = engine_.valid(tiles_, devices[d].space);
    for (std::size_t i = 0; i < here.size(); ++i)
      if (here[i] && holders[i] == no_device) holders[i] = static_cast<DeviceId>(d);
  }
  return holders;
}

namespace {

void check(Engine& engine, const Matrix& a, const FactorOptions& factor, const Options& options) {
  check_options(options);
  check_matrix("A", a);
  check_square("A", a);
  if (factor.overwrite) {
    require(!a.source(), "a source has no memory to overwrite");
    check_output("A", a.view());
  }
  check_finite(engine, options, "A", a);
}

std::shared_ptr<FactorContent> make(Engine& engine, const Matrix& a, Uplo uplo, bool in_place,
                                    std::int64_t tile) {
  auto impl = std::make_shared<FactorContent>();
  impl->uplo = uplo;
  impl->transposed = in_place && layout_of(a.view()) == ViewKind::rows;
  impl->stored = impl->transposed ? flipped(uplo) : uplo;
  MatrixView home;
  if (in_place) home = impl->transposed ? a.view().transposed() : a.view();
  impl->tiles =
      std::make_unique<FactorTiles>(engine, Tiling{a.rows(), tile}, a.dtype(), impl->stored, home);
  return impl;
}

}  // namespace

Factor cho_factor(Engine& engine, const Matrix& a, const FactorOptions& factor,
                  const Options& options) {
  const NamedCall named(engine, "cho_factor");
  const HostAccess held = guard(engine, {{&a, factor.overwrite ? Access::update : Access::read}});
  check(engine, a, factor, options);
  const bool in_place = factor.overwrite && layout_of(a.view()) != ViewKind::strided;
  const DeviceId home = in_place ? common_device(engine, {&a}) : no_device;
  Problem problem{Problem::Kind::cho_solve, a.rows(), 0, a.rows(), a.dtype()};
  problem.from_source = a.source() != nullptr;
  if (in_place) problem.kind = Problem::Kind::cholesky;
  const CallPlan plan = linalg::plan(engine, problem, home, options);
  if (!in_place) check_room(engine, "the factor", a.rows(), a.dtype());
  const auto impl = make(engine, a, factor.uplo, in_place, plan.rows.tile);
  const std::int64_t count = impl->tiling().count();
  if (count == 0) return Factor(impl);
  try {
    Run run(engine, options, cholesky_tasks(count) + static_cast<double>(count * count) / 2);
    std::unique_ptr<TriangleFiller> filler;
    Fill fill;
    if (!in_place) {
      filler = std::make_unique<TriangleFiller>(run, a, factor.uplo, *impl->tiles, impl->transposed,
                                                Rest::any);
      fill = [&](std::int64_t i, std::int64_t j, SubmitOptions where) { (*filler)(i, j, where); };
    }
    submit_cholesky(run, impl->triangle(), plan.triangle, plan.group, fill);
    run.wait();
    // While what is registered there is held: who reads it from now on finds the factor.
    if (in_place && !factor.lazy) impl->tiles->bring_home();
  } catch (...) {
    impl->tiles->discard();
    throw;
  }
  return Factor(impl);
}

Factor factor_from(Engine& engine, const MatrixView& c, Uplo uplo, const Options& options) {
  const Matrix given(c);
  const HostAccess held = guard(engine, {{&given}});
  check_options(options);
  check_matrix("c", c);
  check_square("c", c);
  check_finite(engine, options, "c", c);
  const std::int64_t tile = tile_for(
      engine, {Problem::Kind::cholesky, c.rows, c.rows, c.rows, c.dtype}, options, Trials::none);
  const bool in_place = layout_of(c) != ViewKind::strided;
  if (!in_place) check_room(engine, "the factor", c.rows, c.dtype);
  const auto impl = make(engine, c, uplo, in_place, tile);
  impl->tiles->discard();  // nothing of it changes
  if (in_place) return Factor(impl);
  Run run(engine, options, 1);
  TriangleFiller filler(run, c, uplo, *impl->tiles, false, Rest::any);
  for (std::int64_t j = 0; j < impl->tiling().count(); ++j)
    for (std::int64_t i = j; i < impl->tiling().count(); ++i) filler(i, j, {});
  run.wait();
  return Factor(impl);
}

const FactorContent& Factor::impl() const {
  require(impl_ != nullptr, "this factor is empty");
  return *impl_;
}

std::int64_t Factor::order() const { return impl().tiling().size; }
std::int64_t Factor::tile() const { return impl().tiling().tile; }
DType Factor::dtype() const { return impl().dtype(); }
bool Factor::lower() const { return impl().uplo == Uplo::lower; }
Engine& Factor::engine() const { return impl().tiles->engine(); }

void Factor::bring_home() const {
  const FactorTiles& tiles = *impl().tiles;
  if (!tiles.has_home()) return;
  tiles.for_each([&](Data data) { tiles.engine().wait(data); });
}

Held Factor::held() const {
  const FactorTiles& tiles = *impl().tiles;
  const auto& devices = tiles.engine().machine().devices;
  std::vector<Data> data;
  std::vector<std::size_t> bytes;
  const std::int64_t count = tiles.rows().count();
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t i = j; i < count; ++i) {
      data.push_back(impl().triangle().read(i, j, {}));
      bytes.push_back(static_cast<std::size_t>(tiles.rows().length(i) * tiles.rows().length(j)) *
                      size_of(dtype()));
    }
  }
  const auto in = [&](SpaceId space) {
    const std::vector<bool> here = tiles.engine().valid(data, space);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < here.size(); ++i) sum += here[i] ? bytes[i] : 0;
    return sum;
  };
  Held held;
  for (const std::size_t each : bytes) held.bytes += each;
  for (const Device& device : devices)
    held.device_bytes.push_back(device.space == host_space ? 0 : in(device.space));
  if (!tiles.has_home()) held.buffer_bytes = in(host_space);
  return held;
}

}  // namespace quadriga::linalg
