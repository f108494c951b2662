// SPDX-License-Identifier: BSD-3-Clause
// bench/line.h: one result as one JSON object on one line of standard output.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga::bench {

/// Collects keys and values; print() writes the line.
class Line {
 public:
  explicit Line(std::string_view case_name) { add("case", case_name); }
  Line& add(std::string_view key, double value);
  Line& add(std::string_view key, std::string_view value);
  Line& add(std::string_view key, int value) { return add(key, static_cast<double>(value)); }
  Line& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }
  void print() const;

 private:
  std::string text_;
};

/// Seconds of a clock that never goes back.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The middle one; of an even number the mean of the two in the middle.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace quadriga::bench
