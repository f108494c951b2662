// SPDX-License-Identifier: BSD-3-Clause
// src/message/c_messages.h: what the files of the interface for C share: its objects, how a call
// fails, and elements in memory.
#pragma once

#include <quadriga/error.h>
#include <quadriga/message.h>
#include <quadriga/message_c.h>

#include <cstdint>
#include <exception>

#include "base/c_message.h"
#include "message/communicator_common.h"

// NOLINTBEGIN: names of C.
struct quadriga_communicator {
  quadriga::message::Communicator communicator;
  bool is_part = false;
};
struct quadriga_layout {
  quadriga::message::Layout layout;
};
struct quadriga_request {
  quadriga::message::Request request;
};
struct quadriga_plan {
  quadriga::message::ExchangePlan plan;
};
// NOLINTEND

namespace quadriga::message {

/// Runs one call; no exception passes into C.
template <class Call>
std::int64_t guarded(Call&& call) noexcept try {
  call();
  return 0;
} catch (const Error& error) {
  return c_failed(c_failure_of(error.code()), error.what());
} catch (const std::exception& error) {
  return c_failed(QUADRIGA_OTHER, error.what());
} catch (...) {
  return c_failed(QUADRIGA_OTHER, "what was thrown is no std::exception");
}

inline const Communicator& opened(const quadriga_communicator* comm) {
  require(comm != nullptr, "the communicator is NULL");
  return comm->communicator;
}

/// A collective that `start(communicator)` starts: arguments that are wrong here alone raise on all
/// ranks.
template <class Start>
std::int64_t started(const quadriga_communicator* comm, CallKind kind, quadriga_request** request,
                     const Start& start) noexcept {
  if (request == nullptr) return c_failed(QUADRIGA_INVALID, "the pointer to the result is NULL");
  *request = nullptr;
  return guarded([&] {
    const Communicator& ranks = opened(comm);
    try {
      *request = new quadriga_request{start(ranks)};
    } catch (const Error& error) {
      ranks.common().started().refuse(kind, error.what());
      throw;
    }
  });
}

/// Elements at an address. Errors: invalid_argument for a NULL, or a negative number of them.
SendBuffer sent(const void* data, std::int64_t count, const quadriga_layout* of);
ReceiveBuffer received(void* data, std::int64_t count, const quadriga_layout* of);
ReduceRule known(quadriga_operation operation);

}  // namespace quadriga::message
