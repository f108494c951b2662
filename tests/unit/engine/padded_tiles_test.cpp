// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/padded_tiles_test.cpp: columns of tiles begin where a device wants them; links
// carry the content alone.
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device/pitch.h"

namespace quadriga {
namespace {

TEST(PaddedPitch, IsAMultipleOfTheAlignment) {
  EXPECT_EQ(padded_pitch(11111 * 8, 100, 128), 88960u);
  EXPECT_EQ(padded_pitch(11112 * 8, 100, 128), 88960u);
  EXPECT_EQ(padded_pitch(8192, 100, 128), 8192u);
  EXPECT_EQ(padded_pitch(11111 * 8, 100, 1), 88888u);
}

TEST(PaddedPitch, OfOneColumnIsItsWidth) { EXPECT_EQ(padded_pitch(88888, 1, 128), 88888u); }

TEST(PaddedPitch, AddsAnEighthAtMostAndKeepsElementsApart) {
  for (const std::size_t element : {4, 8, 16})
    for (std::size_t rows = 0; rows < 300; ++rows) {
      const std::size_t width = rows * element;
      const std::size_t pitch = padded_pitch(width, 2, 128);
      EXPECT_GE(pitch, width);
      EXPECT_LE(8 * (pitch - width), width);
      EXPECT_EQ(pitch % element, 0u);
    }
}

constexpr std::int64_t rows = 101, cols = 7;
constexpr std::size_t alignment = 64;
constexpr std::size_t content = rows * cols * sizeof(double);
constexpr std::size_t padded = 832 * cols;

EngineOptions padded_device(std::size_t memory_bytes) {
  EngineOptions options;
  options.machine = Machine::parse("emulated:1,memory=1MiB");
  options.machine->devices[0].pitch_alignment = alignment;
  options.machine->devices[0].memory_bytes = memory_bytes;
  return options;
}

/// Adds one to all elements, and notes how far apart columns lie.
Codelet adding(std::int64_t& ld) {
  Codelet add;
  add.name = "add";
  add.access = {Access::update};
  add.cpu = [&ld](const Arguments& arguments) {
    const View& tile = arguments.operands[0];
    ld = tile.ld;
    for (std::int64_t col = 0; col < tile.cols; ++col)
      for (std::int64_t row = 0; row < tile.rows; ++row) ++tile.as<double>()[row + col * tile.ld];
  };
  return add;
}

TEST(PaddedTiles, KeepTheirContentAndTheBytesOfLinks) {
  std::int64_t ld = 0;
  const Codelet add = adding(ld);
  std::vector<double> home(rows * cols);
  for (std::size_t i = 0; i < home.size(); ++i) home[i] = static_cast<double>(i);
  Engine engine(padded_device(1 << 20));
  SubmitOptions there;
  there.device = 0;
  const Data tile = engine.data(home.data(), rows, cols, rows, DType::float64);
  engine.submit(add, {{tile, Access::update}}, there);
  engine.wait();
  for (std::size_t i = 0; i < home.size(); ++i)
    ASSERT_EQ(home[i], static_cast<double>(i) + 1) << "element " << i;
  EXPECT_EQ(ld * sizeof(double), 832u);
  const Counters counters = engine.counters();
  EXPECT_EQ(counters.host_bytes(), 2 * content);
  EXPECT_EQ(counters.devices[0].most_bytes, (padded + 255) / 256 * 256);
}

TEST(PaddedTiles, ThatDontFitAreRefused) {
  std::int64_t ld = 0;
  const Codelet add = adding(ld);
  constexpr std::int64_t many = 90;
  std::vector<double> home(rows * many);
  Engine engine(padded_device(832 * many - 1));
  const Data tile = engine.data(home.data(), rows, many, rows, DType::float64);
  try {
    engine.submit(add, {{tile, Access::update}});
    engine.wait();
    FAIL() << "the content would fit, its padded columns don't";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large);
    const std::string needed = std::to_string((832 * many + 255) / 256 * 256) + " bytes";
    EXPECT_NE(std::string(error.what()).find(needed), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace quadriga
