// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/factor_test.cpp: factors: solving, determinant, inverse, unpacking, files,
// places.
#include "linalg/factor_file.h"
#include "unit/linalg/matrices.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace quadriga::linalg::testing {
namespace {

namespace fs = std::filesystem;

struct Scratch {
  fs::path path = fs::temp_directory_path() / ("quadriga-factor-" + std::to_string(::getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
};

void expect_solves(const Factor& factor, const Array& a, Lay lay, std::int64_t columns) {
  const DType dtype = a.view().dtype;
  const Array before = random_matrix(a.rows(), columns, dtype, lay, 11);
  Array b = before;
  factor.solve(b.view());
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < a.rows(); ++i)
      ASSERT_LE(std::abs(product(a, Op::none, b, Op::none, i, j) - before.get(i, j)),
                50 * epsilon(dtype) * static_cast<double>(a.rows()))
          << name(dtype) << " lay " << static_cast<int>(lay) << " lower " << factor.lower();
}

double determinant_logarithm(const Array& a) {
  Array l(a.rows(), a.rows(), DType::complex128);
  double sum = 0;
  for (std::int64_t j = 0; j < a.rows(); ++j) {
    for (std::int64_t i = j; i < a.rows(); ++i) {
      Complex value = a.get(i, j);
      for (std::int64_t k = 0; k < j; ++k) value -= l.get(i, k) * std::conj(l.get(j, k));
      l.set(i, j, i == j ? std::sqrt(value) : value / l.get(j, j));
    }
    sum += 2 * std::log(l.get(j, j).real());
  }
  return sum;
}

void expect_inverse_diagonal(const Factor& factor, const Array& a) {
  std::vector<double> diagonal(static_cast<std::size_t>(a.rows()));
  factor.inverse_diagonal(diagonal);
  for (std::int64_t i = 0; i < a.rows(); i += 7) {
    Array unit(a.rows(), 1, a.view().dtype);
    for (std::int64_t r = 0; r < a.rows(); ++r) unit.set(r, 0, r == i ? 1 : 0);
    factor.solve(unit.view());
    EXPECT_NEAR(unit.get(i, 0).real(), diagonal[static_cast<std::size_t>(i)],
                20 * epsilon(a.view().dtype));
  }
}

void expect_unpacks(const Factor& factor, const Array& a, Lay lay) {
  const Uplo uplo = factor.lower() ? Uplo::lower : Uplo::upper;
  Array out = random_matrix(a.rows(), a.rows(), a.view().dtype, lay, 12);
  const Array before = out;
  factor.unpack(out.view());
  for (std::int64_t j = 0; j < a.rows(); ++j)
    for (std::int64_t i = 0; i < a.rows(); ++i) {
      if (!in_triangle(uplo, i, j)) {
        ASSERT_EQ(out.get(i, j), before.get(i, j));
        continue;
      }
      Complex sum = 0;
      for (std::int64_t k = 0; k <= std::min(i, j); ++k)
        sum += factor.lower() ? out.get(i, k) * std::conj(out.get(j, k))
                              : std::conj(out.get(k, i)) * out.get(k, j);
      ASSERT_LE(std::abs(sum - a.get(i, j)),
                50 * epsilon(a.view().dtype) * static_cast<double>(a.rows()))
          << i << ", " << j;
    }
  factor.unpack(out.view(), Other::zero);
  EXPECT_EQ(factor.lower() ? out.get(1, 20) : out.get(20, 1), Complex(0));
}

void check(Engine& engine, DType dtype, Uplo uplo, Lay lay, bool overwrite) {
  const Array a = spd_matrix(43, dtype, lay, 10);
  Array given = a;
  const Factor factor = cho_factor(engine, given.view(), {uplo, overwrite}, {.tile = 16});
  if (!overwrite) {
    EXPECT_TRUE(given.same_bytes(a));
  }
  EXPECT_EQ(factor.order(), 43);
  EXPECT_EQ(factor.tile(), 16);
  EXPECT_EQ(factor.dtype(), dtype);
  EXPECT_EQ(factor.lower(), uplo == Uplo::lower);
  for (const Lay sides : {Lay::columns, Lay::rows, Lay::reversed})
    for (const std::int64_t columns : {1, 20}) expect_solves(factor, a, sides, columns);
  EXPECT_NEAR(factor.logdet(), determinant_logarithm(a), 1000 * epsilon(dtype));
  expect_inverse_diagonal(factor, a);
  for (const Lay out : {Lay::columns, Lay::rows, Lay::every_other}) expect_unpacks(factor, a, out);
}

TEST(Factor, TypesTrianglesAndLayouts) {
  const auto engine = make_engine("cpu:2");
  for (const DType dtype : all_types)
    for (const Uplo uplo : {Uplo::lower, Uplo::upper})
      for (const Lay lay : {Lay::columns, Lay::rows, Lay::reversed})
        for (const bool overwrite : {false, true}) check(*engine, dtype, uplo, lay, overwrite);
}

TEST(Factor, DevicesOfFewTiles) {
  for (const char* const devices :
       {"emulated:2,memory=14KiB", "virtual:emulated:3,memory=7KiB,peer=off",
        "virtual:emulated:3,memory=64KiB"}) {
    const auto engine = make_engine(devices);
    const bool small = std::string(devices).find("=7K") != std::string::npos;
    for (const Uplo uplo : {Uplo::lower, Uplo::upper})
      for (const Lay lay : {Lay::columns, Lay::rows})
        for (const bool overwrite : {false, true})
          check(*engine, small ? DType::float64 : DType::complex128, uplo, lay, overwrite);
  }
}

TEST(Factor, OverwrittenMemoryHoldsTheFactorWhenTheCallEnds) {
  for (const char* const devices : {"cpu:2", "emulated:2,memory=1MiB"}) {
    Array given = spd_matrix(40, DType::float64, Lay::columns, 13);
    Array out(40, 40, DType::float64);
    const auto engine = make_engine(devices);
    const Data known = engine->data(given.view().data, 40, 40, 40, DType::float64);
    const Factor factor = cho_factor(*engine, given.view(), {Uplo::lower, true}, {.tile = 16});
    factor.unpack(out.view());
    for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(given.get(i, i / 2), out.get(i, i / 2));
    const auto at_home = engine->counters().bytes();
    const HostAccess access = engine->on_host(known, Access::read);
    factor.bring_home();
    EXPECT_EQ(engine->counters().bytes(), at_home);
    for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(given.get(i, i / 2), out.get(i, i / 2));
  }
}

TEST(Factor, OverwrittenMemoryHoldsALazyFactorOnceItIsBroughtHome) {
  for (const char* const devices : {"cpu:2", "emulated:2,memory=1MiB"}) {
    const auto engine = make_engine(devices);
    const Array a = spd_matrix(40, DType::float64, Lay::rows, 13);
    Array given = a;
    Array out(40, 40, DType::float64);
    const FactorOptions lazily{Uplo::lower, true, true};
    const Factor factor = cho_factor(*engine, given.view(), lazily, {.tile = 16});
    factor.unpack(out.view());
    factor.bring_home();
    for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(given.get(i, i / 2), out.get(i, i / 2));
    factor.unpack(given.view(), Other::zero);
    EXPECT_EQ(given.get(3, 30), Complex(0));
    expect_solves(factor, a, Lay::columns, 3);
  }
}

TEST(Factor, SolvingMovesNoTileThatIsThere) {
  const auto engine = make_engine("virtual:emulated:3,memory=1MiB");
  const Array a = spd_matrix(150, DType::float64, Lay::columns, 14);
  const Factor factor = cho_factor(*engine, a.view(), {Uplo::lower}, {.tile = 16});
  const Array b = random_matrix(150, 1, DType::float64, Lay::columns, 15);
  const std::uint64_t before = engine->counters().bytes();
  for (int repeat = 0; repeat < 3; ++repeat) factor.solve(b.view());
  const std::uint64_t moved = engine->counters().bytes() - before;
  // Each block of B visits the devices; a single tile of the factor is 2 KiB, all of it 110 KiB.
  const std::uint64_t visits = 3 * 2 * 10 * 10 * 16 * sizeof(double);
  EXPECT_LE(moved, visits);
  const Held sums = factor.held();
  EXPECT_LE(sums.buffer_bytes, sums.bytes);
  std::size_t on_devices = 0;
  for (const std::size_t bytes : sums.device_bytes) on_devices += bytes;
  EXPECT_GE(on_devices, sums.bytes);
}

TEST(Factor, SourcesNeedNoMatrix) {
  for (const char* const devices : {"cpu:2", "emulated:2,memory=8KiB,peer=off"}) {
    const auto engine = make_engine(devices);
    for (const Lay lay : {Lay::columns, Lay::rows}) {
      const Array a = spd_matrix(70, DType::float64, lay, 16);
      const auto source = from_function(
          70, 70, DType::float64,
          [&](std::int64_t row, std::int64_t col, const View& out) {
            for (std::int64_t j = 0; j < out.cols; ++j)
              for (std::int64_t i = 0; i < out.rows; ++i)
                out.as<double>()[i + j * out.ld] = a.get(row + i, col + j).real();
          },
          true, lay == Lay::rows);
      for (const Uplo uplo : {Uplo::lower, Uplo::upper})
        expect_solves(cho_factor(*engine, source, {uplo}, {.tile = 16}), a, Lay::columns, 2);
    }
  }
}

TEST(Factor, CovariancesOfPoints) {
  const auto engine = make_engine("emulated:2,memory=100KiB");
  const Array points = random_matrix(2, 90, DType::float64, Lay::columns, 17);
  CovarianceOptions options;
  options.nugget = 0.1;
  const auto source =
      covariance(options, std::span(static_cast<const double*>(points.view().data), 180), 2);
  Array a(90, 90, DType::float64);
  source->read(0, 0, {a.view().data, 90, 90, 90, DType::float64});
  EXPECT_NEAR(a.get(5, 5).real(), 1.1, 1e-12);
  expect_solves(cho_factor(*engine, source, {Uplo::lower}, {.tile = 16}), a, Lay::columns, 2);
}

TEST(Factor, FromWhatSomebodyElseComputed) {
  const auto engine = make_engine("emulated:2,memory=100KiB");
  for (const Lay lay : {Lay::columns, Lay::rows, Lay::every_other}) {
    const Array a = spd_matrix(40, DType::complex64, lay, 18);
    Array c = a;
    cholesky(*engine, a.view(), c.view(), Uplo::upper, Other::leave, {.tile = 16});
    const Array before = c;
    expect_solves(factor_from(*engine, c.view(), Uplo::upper, {.tile = 12}), a, Lay::columns, 2);
    EXPECT_TRUE(c.same_bytes(before));
  }
}

TEST(Factor, SavedAndLoaded) {
  const Scratch scratch;
  for (const char* const devices : {"cpu:2", "emulated:2,memory=20KiB"}) {
    const auto engine = make_engine(devices);
    for (const Uplo uplo : {Uplo::lower, Uplo::upper})
      for (const Lay lay : {Lay::columns, Lay::rows})
        for (const std::int64_t order : {0, 1, 32, 43}) {
          const Array a = spd_matrix(order, DType::complex128, lay, 19);
          Array given = a;
          cho_factor(*engine, given.view(), {uplo, true}, {.tile = 16}).save(scratch.file("f"));
          const Factor factor = Factor::load(*engine, scratch.file("f"));
          EXPECT_EQ(factor.order(), order);
          EXPECT_EQ(factor.lower(), uplo == Uplo::lower);
          expect_solves(factor, a, Lay::columns, 2);
        }
  }
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(scratch.path)) ++files;
  EXPECT_EQ(files, 1) << "something was left beside the file";
}

void expect_io_error(const std::function<void()>& work, const std::string& words) {
  try {
    work();
    FAIL() << "no error about " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::io);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(Factor, FilesThatLieAreRefused) {
  const Scratch scratch;
  const auto engine = make_engine("cpu:2");
  const Array a = spd_matrix(40, DType::float64, Lay::columns, 20);
  const Factor factor = cho_factor(*engine, a.view(), {Uplo::lower}, {.tile = 16});
  const std::string file = scratch.file("f");
  const auto load = [&] { Factor::load(*engine, file); };
  expect_io_error(load, "No such file");
  factor.save(file);
  const auto size = fs::file_size(file);
  fs::resize_file(file, size - 8);
  expect_io_error(load, "truncated");
  fs::resize_file(file, 20);
  expect_io_error(load, "too short");
  std::ofstream(file) << std::string(100, 'x');
  expect_io_error(load, "doesn't begin");
  factor.save(file);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(24).put('\x77');
  expect_io_error(load, "contradicts");
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(8).put('\x03');
  expect_io_error(load, "version 3");
  expect_io_error([&] { factor.save(scratch.file("missing/f")); }, "No such file");
  expect_io_error([&] { factor.save(scratch.path.string()); }, "not a regular file");
}

TEST(Factor, EachDamagedByteIsFound) {
  const Scratch scratch;
  const auto engine = make_engine("cpu:2");
  const Array a = spd_matrix(11, DType::float32, Lay::columns, 20);
  const std::string file = scratch.file("f");
  const auto load = [&] { Factor::load(*engine, file); };
  cho_factor(*engine, a.view(), {Uplo::lower}, {.tile = 4}).save(file);
  load();
  const auto size = static_cast<std::int64_t>(fs::file_size(file));
  for (std::int64_t at = 0; at < size; ++at) {
    const auto flip = [&] {
      std::fstream content(file, std::ios::in | std::ios::out | std::ios::binary);
      content.seekg(at);
      const int before = content.get();
      content.seekp(at).put(static_cast<char>(before ^ 0x10));
    };
    flip();
    expect_io_error(load, "");
    flip();
  }
  load();
}

TEST(Factor, HeadersWhoseSizesWrapAreRefused) {
  const Scratch scratch;
  const auto engine = make_engine("cpu:1");
  const std::string file = scratch.file("f");
  for (const std::uint32_t version : {1U, 2U})
    for (const auto& [order, tile] : {std::pair<std::int64_t, std::int64_t>{1 << 30, 1 << 30},
                                      {INT32_MAX, INT32_MAX},
                                      {1 << 30, 1 << 20},
                                      {1518500249, 1}}) {
      FactorHeader header;
      header.version = version;
      header.dtype = 3;
      header.order = order;
      header.tile = tile;
      header.bytes = payload_bytes({order, tile}, DType::complex128);  // modulo 2^64
      if (version > 1) header.checksum = checksum_of(header);
      std::ofstream(file).write(reinterpret_cast<const char*>(&header), sizeof(header));
      std::error_code too_large;
      fs::resize_file(file, sizeof(header) + (header.bytes & 0xffffff), too_large);
      expect_io_error([&] { Factor::load(*engine, file); }, "contradicts itself");
    }
}

TEST(Factor, FilesOfTheFirstVersionAreRead) {
  const Scratch scratch;
  const auto engine = make_engine("cpu:1");
  const std::string file = scratch.file("f");
  const Array a = spd_matrix(40, DType::float64, Lay::columns, 20);
  cho_factor(*engine, a.view(), {Uplo::lower}, {.tile = 16}).save(file);
  std::fstream content(file, std::ios::in | std::ios::out | std::ios::binary);
  FactorHeader header;
  content.read(reinterpret_cast<char*>(&header), sizeof(header));
  header.version = 1;
  header.checksum = 0;
  content.seekp(0).write(reinterpret_cast<const char*>(&header), sizeof(header));
  content.close();
  fs::resize_file(file, sizeof(header) + header.bytes);
  expect_solves(Factor::load(*engine, file), a, Lay::columns, 2);
}

TEST(Factor, LinksStayLinks) {
  const Scratch scratch;
  const auto engine = make_engine("cpu:2");
  const Array a = spd_matrix(40, DType::float64, Lay::columns, 20);
  const Factor factor = cho_factor(*engine, a.view(), {Uplo::lower}, {.tile = 16});
  fs::create_directories(scratch.path / "far");
  fs::create_symlink("far/f", scratch.path / "second");
  fs::create_symlink("second", scratch.path / "first");
  for (int i = 0; i < 2; ++i) {  // the file isn't there the first time
    factor.save(scratch.file("first"));
    EXPECT_TRUE(fs::is_symlink(scratch.path / "first"));
    EXPECT_TRUE(fs::is_symlink(scratch.path / "second"));
    EXPECT_EQ(Factor::load(*engine, scratch.file("far/f")).order(), 40);
  }
  const auto left = std::distance(fs::directory_iterator(scratch.path / "far"), {});
  EXPECT_EQ(left, 1);
}

TEST(Factor, EmptyFactorsAndWrongShapesAreRefused) {
  const auto engine = make_engine("cpu:1");
  EXPECT_THROW(Factor().order(), Error);
  const Array a = spd_matrix(5, DType::float64, Lay::columns, 21);
  const Factor factor = cho_factor(*engine, a.view());
  EXPECT_THROW(factor.solve(Array(4, 1, DType::float64).view()), Error);
  EXPECT_THROW(factor.solve(Array(5, 1, DType::float32).view()), Error);
  EXPECT_THROW(factor.unpack(Array(4, 5, DType::float64).view()), Error);
  std::vector<double> few(4);
  EXPECT_THROW(factor.inverse_diagonal(few), Error);
  const Factor none = cho_factor(*engine, Array(0, 0, DType::float64).view());
  EXPECT_EQ(none.logdet(), 0);
  none.solve(Array(0, 3, DType::float64).view());
}

}  // namespace
}  // namespace quadriga::linalg::testing
