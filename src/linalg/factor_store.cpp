// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/factor_store.cpp: saving a factor and loading it, a few tiles on the host at a time.
#include "engine/named_call.h"
#include "linalg/factor.h"
#include "linalg/factor_file.h"
#include "linalg/kernels/codelets.h"
#include "linalg/view.h"

#include <cmath>

namespace quadriga::linalg {
namespace {

struct StoreParams {
  const FactorFile* file = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t index = 0;
};

/// Calls visit(offset, bytes) for the columns of a tile, which lie tight in the file.
template <class Visit>
void for_each_column(const Arguments& arguments, Visit&& visit) {
  const auto params = arguments.param<StoreParams>();
  const View& tile = arguments.operands[0];
  const std::size_t element = size_of(tile.dtype);
  const auto bytes = static_cast<std::size_t>(tile.rows) * element;
  for (std::int64_t j = 0; j < tile.cols; ++j) {
    std::byte* const column =
        tile.as<std::byte>() + static_cast<std::size_t>(j * tile.ld) * element;
    visit(*params.file, params.offset + static_cast<std::uint64_t>(j) * bytes,
          std::span(column, bytes));
  }
}

void save_tile(const Arguments& arguments) {
  Checksum sum;
  for_each_column(arguments, [&](const FactorFile& file, std::uint64_t offset, auto bytes) {
    file.write(offset, bytes);
    sum.add(bytes);
  });
  const auto params = arguments.param<StoreParams>();
  params.file->write_sum(params.index, sum);
}

void load_tile(const Arguments& arguments) {
  Checksum sum;
  for_each_column(arguments, [&](const FactorFile& file, std::uint64_t offset, auto bytes) {
    file.read(offset, bytes);
    sum.add(bytes);
  });
  const auto params = arguments.param<StoreParams>();
  params.file->check_sum(params.index, sum);
}

/// A file is no kernel; any table has a time for a product.
Cost cost_of_file(const Arguments& arguments) {
  const View& tile = arguments.operands[0];
  const double elements = static_cast<double>(tile.rows) * static_cast<double>(tile.cols);
  constexpr double volume_of_an_element = 1024;
  return {"dgemm", std::sqrt(elements), elements * volume_of_an_element};
}

const Codelet& save_codelet() {
  static const Codelet codelet = [] {
    Codelet made;
    made.name = "save";
    made.access = {Access::read};
    made.cpu = save_tile;
    made.cost = cost_of_file;
    made.host_only = true;
    return made;
  }();
  return codelet;
}

const Codelet& load_codelet() {
  static const Codelet codelet = [] {
    Codelet made;
    made.name = "load";
    made.access = {Access::write};
    made.cpu = load_tile;
    made.cost = cost_of_file;
    made.host_only = true;
    return made;
  }();
  return codelet;
}

/// Tiles that pass through the host, used in turn.
class Passage {
 public:
  explicit Passage(Run& run) : run_(run) {}
  Data next(std::int64_t rows, std::int64_t cols, DType dtype) {
    auto& [tiles, turn] = by_shape_[{rows, cols}];
    constexpr std::size_t most = 8;
    if (tiles.size() < most) return tiles.emplace_back(run_.add(rows, cols, dtype));
    return tiles[turn++ % most];
  }

 private:
  Run& run_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::vector<Data>, std::size_t>>
      by_shape_;
};

/// Calls visit(i, j) for the tiles of the lower triangle in the order of the file.
template <class Visit>
void for_each_tile(const Tiling& tiling, Visit&& visit) {
  for (std::int64_t j = 0; j < tiling.count(); ++j)
    for (std::int64_t i = j; i < tiling.count(); ++i) visit(i, j);
}

/// Rows and columns of the file's tile for (i,j), which is that of the factor itself.
std::pair<std::int64_t, std::int64_t> extent(const Tiling& tiling, Uplo uplo, std::int64_t i,
                                             std::int64_t j) {
  return uplo == Uplo::lower ? std::pair(tiling.length(i), tiling.length(j))
                             : std::pair(tiling.length(j), tiling.length(i));
}

}  // namespace

void Factor::save(const std::string& path) const {
  const NamedCall named(engine(), "save");
  const Tiling tiling = impl().tiling();
  FactorHeader header;
  header.dtype = static_cast<std::uint32_t>(dtype());
  header.upper = lower() ? 0 : 1;
  header.order = tiling.size;
  header.tile = tiling.tile;
  header.bytes = payload_bytes(tiling, dtype());
  FactorFile file = FactorFile::create(path, header);
  const Options options;
  {
    Run run(engine(), options, static_cast<double>(tiling.count() * tiling.count()));
    Passage passage(run);
    for_each_tile(tiling, [&](std::int64_t i, std::int64_t j) {
      const auto [rows, cols] = extent(tiling, impl().uplo, i, j);
      const Data tile = passage.next(rows, cols, dtype());
      kernels::CopyParams params{impl().transposed ? Op::transpose : Op::none, {}};
      if (i == j) params.region.part = lower() ? kernels::Part::lower : kernels::Part::upper;
      run.submit(kernels::copy_write_codelet(dtype()),
                 {{impl().triangle().read(i, j, {})}, {tile, Access::write}}, params);
      run.submit(save_codelet(), {{tile}},
                 StoreParams{&file, tile_offset(tiling, dtype(), i, j), tile_index(tiling, i, j)});
    });
    run.wait();
  }
  file.commit();
}

Factor Factor::load(Engine& engine, const std::string& path) {
  const NamedCall named(engine, "load");
  const FactorFile file = FactorFile::open(path);
  const FactorHeader& header = file.header();
  const Tiling tiling{header.order, header.tile};
  const auto dtype = static_cast<DType>(header.dtype);
  auto impl = std::make_shared<FactorContent>();
  impl->uplo = impl->stored = header.upper ? Uplo::upper : Uplo::lower;
  impl->tiles = std::make_unique<FactorTiles>(engine, tiling, dtype, impl->stored, MatrixView{});
  const Options options;
  const DeviceGroup group = group_of(engine);
  const CholeskyShape shape = cholesky_shape(engine, group, tiling.size, tiling.tile, dtype);
  Run run(engine, options, static_cast<double>(tiling.count() * tiling.count()));
  Passage passage(run);
  for_each_tile(tiling, [&](std::int64_t i, std::int64_t j) {
    const auto [rows, cols] = extent(tiling, impl->uplo, i, j);
    const Data tile = passage.next(rows, cols, dtype);
    SubmitOptions where;
    where.owner = group.owner(cholesky_owner(shape, i, j));
    run.submit(load_codelet(), {{tile, Access::write}},
               StoreParams{&file, tile_offset(tiling, dtype, i, j), tile_index(tiling, i, j)});
    run.submit(kernels::copy_write_codelet(dtype),
               {{tile}, {impl->triangle().update(i, j, where), Access::write}},
               kernels::CopyParams{}, where);
  });
  run.wait();
  return Factor(impl);
}

}  // namespace quadriga::linalg
