// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint.cpp: calls and waits.
#include "message/endpoint.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <sched.h>

#include <algorithm>

#include "base/process.h"
#include "message/endpoint_hold.h"
#include "message/stream_order.h"
#include "message/waiting.h"

namespace quadriga::message {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto slice = 50ms;
// Polls with the lock held, then without.
constexpr int polls = 32;
// Rounds of polls before others get the core.
constexpr int rounds_alone = 4;
// Without any movement before sleeping: about ten times what a waking costs.
constexpr auto awake = 500us;
// A yield that takes longer gave the core to another program, and the next one would too.
constexpr auto longest_yield = 200us;

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Of one whose stream waits for it there is no error yet.
MessageStatus result_of(const MessageTransfer& transfer) {
  const bool is_done = transfer.done.load(std::memory_order_acquire);
  if (is_done && transfer.error) std::rethrow_exception(transfer.error);
  return transfer.status;
}

}  // namespace

// Nobody serves while it lives. Ends with the lock held, however the wait ended.
struct Endpoint::Attention {
  Attention(Endpoint& endpoint, Hold& guard) : self(endpoint), hold(guard) {
    self.attendance_.enter();
  }
  ~Attention() {
    hold.resume();
    self.attendance_.leave();
  }
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;
  Endpoint& self;
  Hold& hold;
};

// A probe wants what a receive would want.
struct Endpoint::ProbeNote {
  ProbeNote(Endpoint& endpoint, int from) : self(endpoint), source(from) {
    const Hold hold(self);
    self.traffic_.receives().postbox().begin_probe(source);
  }
  ~ProbeNote() {
    const Hold hold(self);
    self.traffic_.receives().postbox().end_probe(source);
  }
  ProbeNote(const ProbeNote&) = delete;
  ProbeNote& operator=(const ProbeNote&) = delete;
  Endpoint& self;
  int source;
};

Endpoint::Endpoint(std::shared_ptr<SharedSegment> segment, int rank, std::vector<Member> members)
    : segment_(std::move(segment)),
      rank_(rank),
      owner_(process_id()),
      members_(std::move(members)),
      own_(segment_->words(rank), members_[static_cast<std::size_t>(rank)].event),
      traffic_(*segment_, rank, members_),
      attendance_(traffic_, own_) {
  if (members_[static_cast<std::size_t>(rank)].event < 0 || size() == 1) return;
  try {
    attendance_.begin_service();
    const auto serve = [this] {
      const Hold hold(*this);
      return attendance_.serve(closed_);
    };
    service_.emplace(rank, members_, serve, [this](int ended) { note_end(ended); });
  } catch (...) {
    close_all(members_);
    throw;
  }
}

void Endpoint::check_usable() const {
  if (closed_) fail(Errc::unavailable, "the communicator is closed");
}

template <class Over>
Endpoint::Polled Endpoint::poll_until(const Over& is_over, int rounds) {
  bool moved = false;
  for (int i = 0; i < rounds; ++i) {
    const bool moves = traffic_.progress();
    if (is_over()) return Polled::over;
    // What is large takes time: the clock and signals have their turn.
    if (moves && traffic_.has_large()) return Polled::moved;
    if (!moves) pause_briefly();
    moved = moved || moves;
  }
  return moved ? Polled::moved : Polled::nothing;
}

template <class Over>
void Endpoint::wait_until(const Over& is_over, const Posting& what, const Patience& patience) {
  Hold hold(*this);
  const Attention attention(*this, hold);
  if (poll_until(is_over, polls) == Polled::over) return;
  const auto begin = Clock::now();
  const Clock::time_point until = end_of(patience, begin);
  const WaitingNote note{segment_->words(rank_).waiting};
  auto asked = begin;
  auto quiet_since = begin;
  bool sleeps = false;
  for (int round = 1;; ++round) {
    const std::uint32_t seen = own_.count();
    if (sleeps) own_.arm(Doorbell::calls);
    const Polled polled = poll_until(is_over, sleeps ? 1 : polls);
    if (polled == Polled::over) return;
    const bool moves = traffic_.has_moves();
    hold.pause();
    auto now = Clock::now();
    if (polled == Polled::moved) {
      round = 0;
      quiet_since = now;
      sleeps = false;
    } else if (sleeps) {
      note.word.store(waiting_word(what), std::memory_order_relaxed);
      own_.sleep(seen, std::min<Clock::duration>(moves ? nap_after(now - quiet_since) : slice,
                                                 until - now));
      now = Clock::now();
      // What woke it is often followed by more.
      if (own_.count() != seen) {
        round = rounds_alone;
        quiet_since = now;
        sleeps = false;
      }
    } else if (round > rounds_alone) {
      sched_yield();
      const auto back = Clock::now();
      sleeps = back - now > longest_yield || back - quiet_since > awake;
      now = back;
    }
    if (patience.interrupt && now - asked >= slice) {
      asked = now;
      patience.interrupt();
    }
    hold.resume();
    if (now < until) continue;
    if (poll_until(is_over, 1) == Polled::over) return;
    fail(Errc::deadline, fmt::format("{} was not possible within {} s. {}", text_of(what),
                                     patience.seconds, waits_of(*segment_)));
  }
}

Endpoint::Tending::Tending(Endpoint& endpoint) : endpoint_(endpoint) {
  const Hold hold(endpoint_);
  endpoint_.attendance_.enter();
}

Endpoint::Tending::~Tending() {
  const Hold hold(endpoint_);
  endpoint_.attendance_.leave();
}

std::uint64_t Endpoint::handed_over() {
  const Hold hold(*this);
  return attendance_.handed_over();
}

void Endpoint::send(const Posting& message, const Patience& patience) {
  check_not_forked(owner_, "this communicator");
  TransferPtr transfer;
  {
    const Hold hold(*this);
    check_usable();
    if (traffic_.send_now(message)) return;
    transfer = transfer_of(message, true);
    traffic_.start(transfer);
  }
  end_call(transfer, message, patience);
}

MessageStatus Endpoint::receive(const Posting& message, const Patience& patience) {
  check_not_forked(owner_, "this communicator");
  const TransferPtr transfer = transfer_of(message, false);
  {
    const Hold hold(*this);
    check_usable();
    traffic_.start(transfer);
  }
  return end_call(transfer, message, patience);
}

// A call that throws leaves nothing behind that uses the caller's memory, but for a device of a
// rank that is stopped. One that has ended after all ends as if it hadn't met its deadline.
MessageStatus Endpoint::end_call(const TransferPtr& transfer, const Posting& message,
                                 const Patience& patience) {
  const auto is_over = [&] { return has_ended_for_caller(*transfer); };
  try {
    if (!transfer->done.load(std::memory_order_acquire)) wait_until(is_over, message, patience);
  } catch (...) {
    if (withdraw(transfer)) throw;
    if (!transfer->done.load(std::memory_order_acquire)) throw;
  }
  return result_of(*transfer);
}

// With the lock. The stream of a receive waits in the caller's place, for what is queued: nobody
// but the service thread may look after that later.
bool Endpoint::has_ended_for_caller(MessageTransfer& transfer) {
  if (transfer.done.load(std::memory_order_relaxed) || transfer.is_led) return true;
  const bool may_lead =
      transfer.order && transfer.order->can_lead() && !transfer.sends && attendance_.is_served();
  if (!may_lead || !transfer.is_queued()) return false;
  traffic_.receives().lead(transfer);
  return transfer.is_led;
}

TransferPtr Endpoint::start_send(const Posting& message) {
  check_not_forked(owner_, "this communicator");
  const TransferPtr transfer = transfer_of(message, true);
  const Hold hold(*this);
  check_usable();
  traffic_.start(transfer);
  attendance_.hand_over();
  return transfer;
}

TransferPtr Endpoint::start_receive(const Posting& message) {
  check_not_forked(owner_, "this communicator");
  const TransferPtr transfer = transfer_of(message, false);
  const Hold hold(*this);
  check_usable();
  traffic_.start(transfer);
  attendance_.hand_over();
  return transfer;
}

TransferPtr Endpoint::start_move(const Posting& what, std::shared_ptr<DeviceMove> move) {
  check_not_forked(owner_, "this communicator");
  const TransferPtr transfer = transfer_of(what, false);
  transfer->copier = std::move(move);
  const Hold hold(*this);
  check_usable();
  traffic_.start_move(transfer);
  attendance_.hand_over();
  return transfer;
}

MessageStatus Endpoint::wait(const TransferPtr& transfer, const Patience& patience) {
  check_not_forked(owner_, "this communicator");
  if (!transfer->done.load(std::memory_order_acquire)) {
    wait_until([&] { return has_ended_for_caller(*transfer); }, posting_of(*transfer), patience);
  }
  return result_of(*transfer);
}

void Endpoint::start_all(std::span<const TransferPtr> transfers,
                         const std::shared_ptr<void>& keep) {
  check_not_forked(owner_, "this communicator");
  const Hold hold(*this);
  check_usable();
  for (const TransferPtr& each : transfers) {
    each->renew(keep);
    traffic_.start(each);
  }
  attendance_.hand_over();
}

void Endpoint::wait_for(const std::function<bool()>& is_over, const Posting& what,
                        const Patience& patience) {
  check_not_forked(owner_, "this communicator");
  wait_until(is_over, what, patience);
}

void Endpoint::wait_any(std::span<const TransferPtr> transfers, const Patience& patience) {
  check_not_forked(owner_, "this communicator");
  const auto is_over = [&] {
    return std::ranges::any_of(transfers, [](const TransferPtr& each) {
      return each->done.load(std::memory_order_acquire);
    });
  };
  if (transfers.empty() || is_over()) return;
  // What it says that it waits for is the oldest.
  wait_until(is_over, posting_of(*transfers.front()), patience);
}

bool Endpoint::test(const TransferPtr& transfer) {
  check_not_forked(owner_, "this communicator");
  if (!transfer->done.load(std::memory_order_acquire)) {
    const Hold hold(*this);
    traffic_.progress();
    attendance_.hand_over();
    if (!transfer->done.load(std::memory_order_acquire)) return false;
  }
  if (transfer->error) std::rethrow_exception(transfer->error);
  return true;
}

std::optional<MessageStatus> Endpoint::probe(const Posting& message,
                                             const std::optional<Patience>& patience) {
  check_not_forked(owner_, "this communicator");
  std::optional<MessageStatus> found;
  std::exception_ptr lost;
  const Address wanted{message.context, message.peer, message.tag};
  const auto is_over = [&] {
    check_usable();
    found = traffic_.find(wanted, *message.group);
    if (found) return true;
    const bool is_gone =
        message.peer != any_source && traffic_.link(message.peer).presence != Presence::here;
    const int needed = message.peer == any_source ? traffic_.needed_by_any(*message.group)
                                                  : (is_gone ? message.peer : -1);
    if (needed >= 0) lost = loss_of(*message.group, needed, traffic_.link(needed), "probe");
    return lost != nullptr;
  };
  {
    const Hold hold(*this);
    traffic_.progress();
    is_over();
  }
  if (!found && lost) std::rethrow_exception(lost);
  if (found) return found;
  // Only what isn't there is worth reading on for, past what is kept aside.
  const ProbeNote note(*this, message.peer);
  if (patience) {
    wait_until(is_over, message, *patience);
  } else {
    const Hold hold(*this);
    traffic_.progress();
    is_over();
  }
  if (!found && lost) std::rethrow_exception(lost);
  return found;
}

Endpoint::PairReport Endpoint::pair(int rank) {
  const Hold hold(*this);
  const PeerLink& link = traffic_.link(rank);
  PairReport report;
  report.in = static_cast<PairPath>(link.path_in->load(std::memory_order_acquire));
  report.out = static_cast<PairPath>(link.path_out->load(std::memory_order_acquire));
  report.opened = link.memory.opened();
  report.open = link.memory.open();
  return report;
}

std::size_t Endpoint::slot_bytes() const noexcept {
  return SlotRing(nullptr, segment_->shape().messages).capacity() - sizeof(Envelope);
}

std::vector<PredictedPath> Endpoint::predict(const MessageBuffer& from, int peer,
                                             const MessageBuffer& into) {
  PathQuestion question{from, into};
  question.rates = host_rates();
  question.is_own = peer == rank_;
  const Hold hold(*this);
  check_usable();
  const PeerLink& link = traffic_.link(peer);
  question.is_thread = link.process < 0;
  question.can_read = link.can_read && link.pid > 0;
  question.slot_bytes = link.messages_out.capacity() - sizeof(Envelope);
  question.piece_bytes = link.pieces_out.capacity() - sizeof(PieceHead);
  question.known = static_cast<PairPath>(link.path_out->load(std::memory_order_acquire));
  return predicted_paths(question);
}

void Endpoint::force_path(int rank, PairPath path) {
  traffic_.link(rank).path_in->store(static_cast<std::uint32_t>(path), std::memory_order_release);
}

}  // namespace quadriga::message
