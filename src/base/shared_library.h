// SPDX-License-Identifier: BSD-3-Clause
// src/base/shared_library.h: libraries that are opened on first use instead of linked.
#pragma once

#include <string>

namespace quadriga {

/// A shared library that stays open for the process's life, or the reason why it can't be.
class SharedLibrary {
 public:
  /// Takes the one that is loaded already under this name, else looks where the loader does.
  explicit SharedLibrary(const std::string& name);

  /// Empty if it is open, else what the loader says.
  const std::string& absence() const noexcept { return absence_; }
  /// A function's address; null if the library lacks it or isn't open.
  void* find(const char* function) const noexcept;

 private:
  void* handle_ = nullptr;
  std::string absence_;
};

}  // namespace quadriga
