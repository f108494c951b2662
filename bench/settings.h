// SPDX-License-Identifier: BSD-3-Clause
// bench/settings.h: what a benchmark is asked for on its command line.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace quadriga::bench {

/// The options "--name value" of a command.
class Settings {
 public:
  /// Errors: invalid_argument naming what is not of this form.
  Settings(int count, char** words);

  std::string text(std::string_view name, std::string_view otherwise = {}) const;
  /// Errors: invalid_argument if it is no number of at least `least`.
  long long integer(std::string_view name, long long otherwise, long long least = 1) const;

 private:
  std::map<std::string, std::string, std::less<>> given_;
};

}  // namespace quadriga::bench
