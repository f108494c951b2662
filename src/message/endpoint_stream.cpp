// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint_stream.cpp: how a collective waits for what devices do otherwise than by
// messages, of which no bell tells: the stream of an array, and NCCL.
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
constexpr auto asks_each = 50ms;
// A stream that is about to come so far is met without a sleep.
constexpr auto yields_for = 200us;

}  // namespace

void Endpoint::await_stream(StreamOrder& order, const Posting& what, const Patience& patience) {
  if (order.is_reached()) return;
  Posting waits = what;
  waits.peer = own_stream;
  await_work([&] { return order.is_reached(); }, waits, patience,
             "the stream of its array didn't come so far");
}

void Endpoint::await_work(const std::function<bool()>& is_over, const Posting& what,
                          const Patience& patience, const char* late) {
  const auto begin = Clock::now();
  const Clock::time_point until = end_of(patience, begin);
  const WaitingNote note{segment_->words(rank_).waiting};
  note.word.store(waiting_word(what), std::memory_order_relaxed);
  auto asked = begin;
  while (!is_over()) {
    {
      const Hold hold(*this);
      traffic_.progress();
    }
    const auto now = Clock::now();
    if (now >= until)
      fail(Errc::deadline, fmt::format("{}: {} within {} s. {}", name(what.operation), late,
                                       patience.seconds, waits_of(*segment_)));
    if (now - asked >= asks_each) {
      asked = now;
      check(*what.group, what.operation, what.context);
      if (patience.interrupt) patience.interrupt();
    }
    if (now - begin < yields_for)
      sched_yield();
    else
      std::this_thread::sleep_for(std::min<Clock::duration>(nap_after(now - begin), until - now));
  }
}

}  // namespace quadriga::message
