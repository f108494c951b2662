// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/endpoints.h: what tests of messages between threads of one process start from.
#pragma once

#include <quadriga/error.h>

#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "message/endpoint.h"

namespace quadriga::message::testing {

using Endpoints = std::vector<std::shared_ptr<Endpoint>>;

inline MessageBuffer place_of(std::vector<double>& data, ElementType type = ElementType::float64) {
  return {Layout::contiguous(static_cast<std::int64_t>(data.size()), type),
          reinterpret_cast<std::byte*>(data.data())};
}

inline std::shared_ptr<const Group> world(const Endpoint& endpoint) {
  auto group = std::make_shared<Group>();
  group->world.resize(static_cast<std::size_t>(endpoint.size()));
  std::iota(group->world.begin(), group->world.end(), 0);
  group->rank = endpoint.rank();
  return group;
}

inline Posting to(const Endpoint& from, int peer, int tag, MessageBuffer place) {
  return {std::move(place), peer, tag, 1, world(from), CallKind::send};
}

inline Posting from(const Endpoint& at, int peer, int tag, MessageBuffer place) {
  return {std::move(place), peer, tag, 1, world(at), CallKind::recv};
}

/// For a probe.
inline Posting question(const Endpoint& at, int peer, int tag) {
  return {{}, peer, tag, 1, world(at), CallKind::probe};
}

/// Runs a function for each rank, each in a thread of its own.
inline void as_threads(int count,
                       const std::function<void(const std::shared_ptr<Endpoint>&)>& run) {
  const Endpoints all = local_endpoints(count);
  std::vector<std::thread> threads;
  for (const auto& each : all) threads.emplace_back([&run, &each] { run(each); });
  for (std::thread& each : threads) each.join();
}

/// That of the error that a call throws; internal if it throws none.
inline Errc code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::internal;
}

}  // namespace quadriga::message::testing
