// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint_stream.cpp: how a collective waits for the stream of an array.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "message/endpoint_hold.h"
#include "message/stream_order.h"
#include "message/waiting.h"

namespace quadriga::message {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Between questions of the interrupt, and whether the collective is over already.
constexpr auto asks_of_streams_each = 50ms;
// A stream that is about to come so far is met without a sleep.
constexpr auto yields_for = 200us;
// Events of devices ring no bell.
constexpr auto looks_each = 50us;

}  // namespace

void Endpoint::await_stream(StreamOrder& order, const Posting& what, const Patience& patience) {
  if (order.is_reached()) return;
  const auto begin = Clock::now();
  const Clock::time_point until = end_of(patience, begin);
  Posting waits = what;
  waits.peer = own_stream;
  const WaitingNote note{segment_->words(rank_).waiting};
  note.word.store(waiting_word(waits), std::memory_order_relaxed);
  auto asked = begin;
  while (!order.is_reached()) {
    {
      const Hold hold(*this);
      traffic_.progress();
    }
    const auto now = Clock::now();
    if (now >= until)
      fail(Errc::deadline,
           fmt::format("{}: the stream of its array didn't come so far within {} s. {}",
                       name(what.operation), patience.seconds, waits_of(*segment_)));
    if (now - asked >= asks_of_streams_each) {
      asked = now;
      check(*what.group, what.operation, what.context);
      if (patience.interrupt) patience.interrupt();
    }
    if (now - begin < yields_for)
      sched_yield();
    else
      std::this_thread::sleep_for(std::min<Clock::duration>(looks_each, until - now));
  }
}

}  // namespace quadriga::message
