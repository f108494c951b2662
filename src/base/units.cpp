// SPDX-License-Identifier: BSD-3-Clause
// src/base/units.cpp: one table of units for each quantity, one reader for all.
#include "base/units.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>

namespace quadriga {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kibi = 1024.0;
constexpr std::array byte_units{
    Unit{"B", 1},
    Unit{"kB", 1e3},
    Unit{"MB", 1e6},
    Unit{"GB", 1e9},
    Unit{"TB", 1e12},
    Unit{"KiB", kibi},
    Unit{"MiB", kibi* kibi},
    Unit{"GiB", kibi* kibi* kibi},
    Unit{"TiB", kibi* kibi* kibi* kibi},
};
constexpr std::array time_units{
    Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3},
    Unit{"s", 1},     Unit{"min", 60},  Unit{"h", 3600},
};

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

[[noreturn]] void refuse(std::string_view text, std::string_view quantity,
                         std::string_view expected) {
  fail(Errc::invalid_argument,
       fmt::format("'{}' is not a {}; expected a number {}", text, quantity, expected));
}

// The number times its unit's factor; a number alone counts as 1 of the base unit.
double parse_quantity(std::string_view text, std::span<const Unit> units, std::string_view quantity,
                      std::string_view expected) {
  const std::string_view trimmed = trim(text);
  double number = 0;
  const auto [end, status] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (status != std::errc() || !std::isfinite(number) || std::signbit(number))
    refuse(text, quantity, expected);
  const std::string_view unit =
      trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data())));
  if (unit.empty()) return number;
  const auto found =
      std::ranges::find_if(units, [&](const Unit& each) { return same_word(each.name, unit); });
  if (found == units.end()) refuse(text, quantity, expected);
  return number * found->factor;
}

constexpr std::string_view size_expected =
    "of at least 0 with a unit of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB or none, as in 64MiB";
constexpr std::string_view rate_expected =
    "above 0 with a unit of B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s or none, "
    "as in 6GB/s";
constexpr std::string_view time_expected =
    "of at least 0 with a unit of ns, us, ms, s, min, h or none, as in 10us";

std::string scaled(double value, double step, std::span<const std::string_view> names) {
  std::size_t index = 0;
  while (std::abs(value) >= step && index + 1 < names.size()) {
    value /= step;
    ++index;
  }
  return value >= 1000 ? fmt::format("{:.0f} {}", value, names[index])
                       : fmt::format("{:.3g} {}", value, names[index]);
}

}  // namespace

std::size_t parse_bytes(std::string_view text) {
  const double bytes = parse_quantity(text, byte_units, "size in bytes", size_expected);
  if (bytes >= 0x1p63) refuse(text, "size in bytes", "below 2^63 bytes");
  return static_cast<std::size_t>(std::llround(bytes));
}

double parse_bytes_per_second(std::string_view text) {
  std::string_view size = trim(text);
  if (size.size() > 2 && same_word(size.substr(size.size() - 2), "/s")) size.remove_suffix(2);
  const double rate = parse_quantity(size, byte_units, "rate in bytes per second", rate_expected);
  if (rate <= 0) refuse(text, "rate in bytes per second", rate_expected);
  return rate;
}

double parse_seconds(std::string_view text) {
  return parse_quantity(text, time_units, "time in seconds", time_expected);
}

long long parse_integer(std::string_view text, long long least, long long most) {
  const std::string_view trimmed = trim(text);
  long long value = 0;
  const char* last = trimmed.data() + trimmed.size();
  const auto [end, status] = std::from_chars(trimmed.data(), last, value);
  if (status != std::errc() || end != last || value < least || value > most)
    fail(Errc::invalid_argument,
         fmt::format("'{}' is not a whole number from {} to {}", text, least, most));
  return value;
}

std::string format_bytes(double bytes) {
  static constexpr std::array<std::string_view, 6> names{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return scaled(bytes, kibi, names);
}

std::string format_bytes_per_second(double bytes_per_second) {
  static constexpr std::array<std::string_view, 5> names{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return scaled(bytes_per_second, 1000, names);
}

std::string format_seconds(double seconds) {
  const double size = std::abs(seconds);
  if (size == 0) return "0 s";
  if (size < 1e-6) return fmt::format("{:.3g} ns", seconds * 1e9);
  if (size < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (size < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (size < 60) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (size < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace quadriga
