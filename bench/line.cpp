// SPDX-License-Identifier: BSD-3-Clause
// bench/line.cpp: writes results as JSON.
#include "line.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace quadriga::bench {

Line& Line::add(std::string_view key, double value) {
  // JSON has no infinities.
  text_ += fmt::format("{}\"{}\": {}", text_.empty() ? "" : ", ", key,
                       std::isfinite(value) ? fmt::format("{}", value) : "null");
  return *this;
}

Line& Line::add(std::string_view key, std::string_view value) {
  text_ +=
      fmt::format("{}\"{}\": {}", text_.empty() ? "" : ", ", key, nlohmann::json(value).dump());
  return *this;
}

void Line::print() const {
  fmt::print("{{{}}}\n", text_);
  std::fflush(stdout);
}

}  // namespace quadriga::bench
