// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/error.h: the one exception of the library and its few codes.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace quadriga {

/// The kind of an error; stable across versions.
enum class Errc {
  invalid_argument,  ///< A value, shape or type that the caller passed.
  too_large,         ///< A task or a matrix that can never fit the memory it needs.
  not_positive_definite,
  task_failed,  ///< A variant threw, or read what a failed task should have written.
  device_lost,
  peer_lost,    ///< Another process of a communicator has ended, or has left it.
  deadline,     ///< A wait reached its deadline; the work continues.
  cancelled,    ///< The work was cancelled by its caller.
  io,           ///< A file that can't be read, written or held.
  unavailable,  ///< Not on this machine or not in this build.
  internal,     ///< A bug in Quadriga.
};

/// "invalid_argument" and so on.
std::string_view name(Errc code) noexcept;

/// The only exception type that Quadriga throws.
class Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& message,
        std::source_location where = std::source_location::current());
  Errc code() const noexcept { return code_; }
  /// Where in Quadriga it was raised.
  const std::source_location& where() const noexcept { return where_; }

 private:
  Errc code_;
  std::source_location where_;
};

/// The leading minor that is not positive definite, counted from 1 as LAPACK's `info`.
class NotPositiveDefinite : public Error {
 public:
  explicit NotPositiveDefinite(long long minor,
                               std::source_location where = std::source_location::current());
  long long minor() const noexcept { return minor_; }

 private:
  long long minor_;
};

/// A process that a communicator's call needs has ended, or has left the communicator.
class PeerLost : public Error {
 public:
  PeerLost(int rank, const std::string& message,
           std::source_location where = std::source_location::current())
      : Error(Errc::peer_lost, message, where), rank_(rank) {}
  /// Its rank in the communicator of the call.
  int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// Throws Error(code, message).
[[noreturn]] void fail(Errc code, const std::string& message,
                       std::source_location where = std::source_location::current());

/// Throws Error(invalid_argument, message) unless `condition` holds.
inline void require(bool condition, std::string_view message,
                    std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    fail(Errc::invalid_argument, std::string(message), where);
}

}  // namespace quadriga
