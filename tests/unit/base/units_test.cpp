// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/base/units_test.cpp: what sizes, rates and times are read and refused.
#include "base/units.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <string>

namespace quadriga {
namespace {

std::string refusal(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(Units, ReadsSizes) {
  EXPECT_EQ(parse_bytes("64MiB"), std::size_t{64} << 20);
  EXPECT_EQ(parse_bytes(" 1.5 GB "), 1'500'000'000u);
  EXPECT_EQ(parse_bytes("600e6"), 600'000'000u);
  EXPECT_EQ(parse_bytes("600e6B"), 600'000'000u);
  EXPECT_EQ(parse_bytes("1024"), 1024u);
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("3kib"), 3072u);
  EXPECT_EQ(parse_bytes("2TiB"), std::size_t{2} << 40);
}

TEST(Units, RefusesBadSizesAndSaysWhatItTakes) {
  for (const char* text :
       {"", "MiB", "-1MiB", "-0", "64 M", "1e400", "inf", "nan", "12Gb/s", "1 2", "9e18kB"})
    EXPECT_NE(refusal([&] { parse_bytes(text); }), "") << text;
  const std::string message = refusal([] { parse_bytes("64XB"); });
  EXPECT_NE(message.find("'64XB'"), std::string::npos) << message;
  EXPECT_NE(message.find("MiB"), std::string::npos) << message;
}

TEST(Units, ReadsRates) {
  EXPECT_DOUBLE_EQ(parse_bytes_per_second("6GB/s"), 6e9);
  EXPECT_DOUBLE_EQ(parse_bytes_per_second("6 GB/s"), 6e9);
  EXPECT_DOUBLE_EQ(parse_bytes_per_second("540e6"), 540e6);
  EXPECT_DOUBLE_EQ(parse_bytes_per_second("1GiB"), 1073741824.0);
  for (const char* text : {"0", "-6GB/s", "off", "/s", "6GB/h"})
    EXPECT_NE(refusal([&] { parse_bytes_per_second(text); }), "") << text;
}

TEST(Units, ReadsTimes) {
  EXPECT_DOUBLE_EQ(parse_seconds("10us"), 10e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5 ms"), 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_seconds("2e-6"), 2e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("3min"), 180);
  EXPECT_NE(refusal([] { parse_seconds("3 fortnights"); }), "");
}

TEST(Units, ReadsIntegersInARange) {
  EXPECT_EQ(parse_integer(" 12 ", 1, 12), 12);
  for (const char* text : {"13", "0", "1.5", "x", "", "7x", "99999999999999999999"})
    EXPECT_NE(refusal([&] { parse_integer(text, 1, 12); }), "") << text;
}

TEST(Units, PrintsWhatItReads) {
  EXPECT_EQ(format_bytes(64.0 * 1024 * 1024), "64 MiB");
  EXPECT_EQ(format_bytes(17), "17 B");
  EXPECT_EQ(format_bytes(1023.0 * 1024), "1023 KiB");
  EXPECT_EQ(parse_bytes(format_bytes(1.5 * 1024 * 1024 * 1024)), std::size_t{3} << 29);
  EXPECT_EQ(format_bytes_per_second(540e6), "540 MB/s");
  EXPECT_EQ(format_seconds(12.5e-6), "12.5 us");
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(125), "2 min 5 s");
  EXPECT_EQ(format_seconds(3725), "1 h 2 min");
}

}  // namespace
}  // namespace quadriga
