// SPDX-License-Identifier: BSD-3-Clause
// bench/settings.cpp: reads "--name value" pairs.
#include "settings.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include "base/units.h"

namespace quadriga::bench {

Settings::Settings(int count, char** words) {
  for (int i = 0; i < count; i += 2) {
    const std::string_view word = words[i];
    require(word.starts_with("--") && i + 1 < count,
            fmt::format("'{}': expected options of the form --name value", word));
    given_.insert_or_assign(std::string(word.substr(2)), words[i + 1]);
  }
}

std::string Settings::text(std::string_view name, std::string_view otherwise) const {
  const auto found = given_.find(name);
  return found == given_.end() ? std::string(otherwise) : found->second;
}

long long Settings::integer(std::string_view name, long long otherwise, long long least) const {
  const auto found = given_.find(name);
  return found == given_.end() ? otherwise : parse_integer(found->second, least, 1LL << 40);
}

}  // namespace quadriga::bench
