// SPDX-License-Identifier: BSD-3-Clause
// src/base/error.cpp: the exception type, the names of its codes and of the vocabulary in types.h.
#include <quadriga/error.h>
#include <quadriga/types.h>

namespace quadriga {

std::string_view name(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return "invalid_argument";
    case Errc::too_large:
      return "too_large";
    case Errc::not_positive_definite:
      return "not_positive_definite";
    case Errc::task_failed:
      return "task_failed";
    case Errc::device_lost:
      return "device_lost";
    case Errc::peer_lost:
      return "peer_lost";
    case Errc::deadline:
      return "deadline";
    case Errc::cancelled:
      return "cancelled";
    case Errc::io:
      return "io";
    case Errc::unavailable:
      return "unavailable";
    case Errc::internal:
      return "internal";
  }
  return "unknown";
}

std::string_view name(DType type) noexcept {
  switch (type) {
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::complex64:
      return "complex64";
    case DType::complex128:
      return "complex128";
    case DType::bytes:
      return "bytes";
  }
  return "unknown";
}

std::string_view name(Access access) noexcept {
  switch (access) {
    case Access::read:
      return "read";
    case Access::write:
      return "write";
    case Access::update:
      return "update";
    case Access::commute:
      return "commute";
    case Access::reduce:
      return "reduce";
  }
  return "unknown";
}

namespace {

/// Text that what() gives whole: a NUL, as of an argument that is quoted, would end it.
std::string without_nul(const std::string& message) {
  std::string text;
  for (const char each : message) {
    if (each == '\0')
      text += "\\0";
    else
      text += each;
  }
  return text;
}

}  // namespace

Error::Error(Errc code, const std::string& message, std::source_location where)
    : std::runtime_error(message.find('\0') == std::string::npos ? message : without_nul(message)),
      code_(code),
      where_(where) {}

NotPositiveDefinite::NotPositiveDefinite(long long minor, std::source_location where)
    : Error(Errc::not_positive_definite,
            std::to_string(minor) + "-th leading minor of the matrix is not positive definite",
            where),
      minor_(minor) {}

void fail(Errc code, const std::string& message, std::source_location where) {
  throw Error(code, message, where);
}

}  // namespace quadriga
