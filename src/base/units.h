// SPDX-License-Identifier: BSD-3-Clause
// src/base/units.h: reads and prints sizes, rates and times with their units.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quadriga {

/// Reads a number of bytes: "64MiB", "1.5 GB", "600e6", "1024". A fraction of a byte is rounded.
///
/// Units:   B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024), in any case.
/// Errors:  invalid_argument naming the text and the accepted units; also if negative or
/// not finite.
std::size_t parse_bytes(std::string_view text);

/// Reads a rate: a size as above, alone or followed by "/s": "6GB/s", "540e6". Must be above zero.
double parse_bytes_per_second(std::string_view text);

/// Reads a time in seconds: "10us", "1.5 ms", "2e-6", "3min". Units: ns, us, ms, s, min, h.
double parse_seconds(std::string_view text);

/// Reads a whole number from `least` to `most`. Errors: invalid_argument naming text and range.
long long parse_integer(std::string_view text, long long least, long long most);

/// "64 MiB", "1.5 GiB", "17 B": the largest binary unit that leaves at least 1, three digits.
std::string format_bytes(double bytes);

/// "6 GB/s", "540 MB/s": decimal units, as links are rated.
std::string format_bytes_per_second(double bytes_per_second);

/// "12.5 us", "3.21 s", "2 min 5 s".
std::string format_seconds(double seconds);

}  // namespace quadriga
