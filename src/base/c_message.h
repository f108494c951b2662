// SPDX-License-Identifier: BSD-3-Clause
// src/base/c_message.h: what went wrong in a thread's last call of a function for C.
#pragma once

#include <quadriga/c_errors.h>
#include <quadriga/error.h>

#include <cstdint>
#include <string>

namespace quadriga {

/// Keeps the words for quadriga_message(); returns the number.
std::int64_t c_failed(std::int64_t number, const std::string& what);
/// The number that stands for an error of the library in enum quadriga_failure.
std::int64_t c_failure_of(Errc code) noexcept;

}  // namespace quadriga
