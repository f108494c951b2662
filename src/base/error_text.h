// SPDX-License-Identifier: BSD-3-Clause
// src/base/error_text.h: what an exception says that was caught elsewhere.
#pragma once

#include <exception>
#include <string>

namespace quadriga {

/// `error` must not be null.
inline std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace quadriga
