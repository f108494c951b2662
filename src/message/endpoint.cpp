// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint.cpp: calls, waits, losses, and the thread that serves while nobody calls.
#include "message/endpoint.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <sched.h>

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "base/process.h"
#include "message/waiting.h"

namespace quadriga::message {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto slice = 50ms;
// Polls with the lock held, then without.
constexpr int polls = 32;
// Rounds of polls before others get the core, and before sleeping.
constexpr int rounds_alone = 4;
constexpr int rounds_awake = 40;
// A yield that takes longer gave the core to another program, and the next one would too.
constexpr auto longest_yield = 200us;

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

PeerLinks links_of(const SharedSegment& segment, int rank, const std::vector<Member>& members) {
  PeerLinks links;
  for (int other = 0; other < segment.shape().ranks; ++other) {
    const Member& member = members[static_cast<std::size_t>(other)];
    links.emplace_back(segment, rank, other, member.event);
    links.back().pid = member.pid;
    links.back().process = member.process;
  }
  return links;
}

bool has(const Group& group, int rank) noexcept { return group.rank_of(rank) >= 0; }

}  // namespace

// Nobody serves while it lives. Ends with the lock held, however the wait ended.
struct Endpoint::Attention {
  Attention(Endpoint& endpoint, std::unique_lock<std::mutex>& guard) : self(endpoint), lock(guard) {
    ++self.attended_;
    if (self.own_.armed(Doorbell::service)) self.own_.disarm(Doorbell::service);
  }
  ~Attention() {
    if (!lock.owns_lock()) lock.lock();
    --self.attended_;
    self.leave_to_service();
  }
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;
  Endpoint& self;
  std::unique_lock<std::mutex>& lock;
};

Endpoint::Endpoint(std::shared_ptr<SharedSegment> segment, int rank, std::vector<Member> members)
    : segment_(std::move(segment)),
      rank_(rank),
      owner_(process_id()),
      members_(std::move(members)),
      own_(segment_->words(rank), members_[static_cast<std::size_t>(rank)].event),
      links_(links_of(*segment_, rank, members_)),
      sends_(*segment_, rank, links_),
      receives_(rank, links_) {
  if (members_[static_cast<std::size_t>(rank)].event >= 0 && size() > 1)
    service_.emplace(
        rank, members_, [this] { return serve_once(); }, [this](int ended) { note_end(ended); });
}

Endpoint::~Endpoint() {
  if (process_id() != owner_) {
    if (service_) service_->forget();
    return;
  }
  const std::string open = close(patience_at_end);
  if (!open.empty()) log(LogLevel::warning, open);
  service_.reset();
  close_all(members_);
}

void Endpoint::check_usable() const {
  if (closed_) fail(Errc::unavailable, "the communicator is closed");
}

// Nothing starts that needs a rank that is gone.
void Endpoint::start(const TransferPtr& transfer) {
  check_usable();
  const int peer = transfer->peer;
  if (const std::string* const why = receives_.abort_of(transfer->context))
    return transfer->finish(std::make_exception_ptr(Error(Errc::cancelled, *why)));
  if (transfer->sends && peer == rank_) {
    receives_.send_to_self(transfer->place, transfer->tag, transfer->context);
    return transfer->finish();
  }
  const auto fail_for = [&](int rank) {
    receives_.cancel(transfer);
    transfer->finish(loss_of(*transfer, rank, links_[static_cast<std::size_t>(rank)]));
  };
  const auto is_gone = [&](int rank) {
    return links_[static_cast<std::size_t>(rank)].presence != Presence::here;
  };
  if (transfer->sends) {
    if (is_gone(peer)) return fail_for(peer);
    return sends_.start(transfer);
  }
  receives_.start(transfer);
  if (transfer->done.load(std::memory_order_relaxed)) return;
  if (peer != any_source) {
    if (is_gone(peer) && transfer->expected == 0) fail_for(peer);
    return;
  }
  if (transfer->expected > 0) return;
  int left = 0, last = -1;
  for (const int rank : transfer->group->world) {
    if (links_[static_cast<std::size_t>(rank)].presence == Presence::lost) return fail_for(rank);
    if (!is_gone(rank)) continue;
    ++left;
    last = rank;
  }
  // Nobody but this rank is left to send.
  if (left > 0 && left == transfer->group->size() - 1) fail_for(last);
}

bool Endpoint::progress() {
  bool moved = false;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    moved = receives_.advance(peer) || moved;
  }
  moved = receives_.advance_reads() || moved;
  moved = sends_.advance() || moved;
  if (receives_.take_fault()) [[unlikely]]
    for (int peer = 0; peer < size(); ++peer) {
      PeerLink& link = links_[static_cast<std::size_t>(peer)];
      if (!link.reason.empty() && link.presence == Presence::here)
        lose(peer, Presence::lost, link.reason);
    }
  for (const std::uint32_t context : receives_.take_aborts()) end_aborted(context);
  if (segment_->departures().load(std::memory_order_acquire) != departures_) [[unlikely]]
    look_for_departures();
  const bool received = receives_.take_ended(), sent = sends_.take_ended();
  if (received || sent) own_.ring();
  return moved;
}

void Endpoint::look_for_departures() {
  departures_ = segment_->departures().load(std::memory_order_acquire);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank_ && segment_->words(peer).left.load(std::memory_order_acquire) != 0)
      lose(peer, Presence::left, "");
  }
}

void Endpoint::lose(int peer, Presence presence, const std::string& reason) {
  PeerLink& link = links_[static_cast<std::size_t>(peer)];
  if (link.presence != Presence::here) return;
  if (link.reason.empty()) receives_.advance(peer, true);
  link.presence = presence;
  link.reason = reason;
  const auto is_alone = [&](const Group& group) {
    return std::ranges::all_of(group.world, [&](int rank) {
      return rank == rank_ || links_[static_cast<std::size_t>(rank)].presence != Presence::here;
    });
  };
  // A collective needs all ranks, and a receive from any rank can't tell whom it needs.
  const auto also = [&](const MessageTransfer& transfer) {
    const bool any = !transfer.sends && transfer.peer == any_source;
    if (presence == Presence::left) return any && is_alone(*transfer.group);
    return (any || transfer.operation > CallKind::probe) && has(*transfer.group, peer);
  };
  const auto error = [&](const MessageTransfer& transfer) { return loss_of(transfer, peer, link); };
  receives_.drop(peer, also, error);
  sends_.drop(peer, also, error);
  own_.ring();
}

template <class Over>
Endpoint::Polled Endpoint::poll_until(const Over& is_over, int rounds) {
  bool moved = false;
  for (int i = 0; i < rounds; ++i) {
    const bool moves = progress();
    if (is_over()) return Polled::over;
    if (!moves) pause_briefly();
    moved = moved || moves;
  }
  return moved ? Polled::moved : Polled::nothing;
}

template <class Over>
void Endpoint::wait_until(const Over& is_over, const Posting& what, const Patience& patience) {
  std::unique_lock lock(mutex_);
  const Attention attention(*this, lock);
  if (poll_until(is_over, polls) == Polled::over) return;
  const auto begin = Clock::now();
  const Clock::time_point until = end_of(patience, begin);
  const WaitingNote note{segment_->words(rank_).waiting};
  auto asked = begin;
  for (int round = 1;; ++round) {
    const bool sleeps = round > rounds_awake;
    const std::uint32_t seen = own_.count();
    if (sleeps) own_.arm(Doorbell::calls);
    const Polled polled = poll_until(is_over, sleeps ? 1 : polls);
    if (polled == Polled::over) return;
    lock.unlock();
    auto now = Clock::now();
    if (polled == Polled::moved) {
      round = 0;
    } else if (sleeps) {
      note.word.store(waiting_word(what), std::memory_order_relaxed);
      own_.sleep(seen, std::min<Clock::duration>(slice, until - now));
      now = Clock::now();
      // What woke it is often followed by more.
      if (own_.count() != seen) round = rounds_alone;
    } else if (round > rounds_alone) {
      sched_yield();
      const auto back = Clock::now();
      if (back - now > longest_yield) round = rounds_awake;
      now = back;
    }
    if (patience.interrupt && now - asked >= slice) {
      asked = now;
      patience.interrupt();
    }
    lock.lock();
    if (now < until) continue;
    if (poll_until(is_over, 1) == Polled::over) return;
    fail(Errc::deadline, fmt::format("{} was not possible within {} s. {}", text_of(what),
                                     patience.seconds, waits_of(*segment_)));
  }
}

void Endpoint::leave_to_service() noexcept {
  if (attended_ > 0 || !service_ || own_.armed(Doorbell::service)) return;
  if (!receives_.has_large() && !sends_.has_large()) return;
  own_.arm(Doorbell::service);
  // What came before it was armed rang no bell; what it leads to is the thread's.
  bool moved = true;
  try {
    moved = progress();
  } catch (...) {
    // The thread meets it too, and says so.
  }
  if (moved) own_.wake_service();
}

void Endpoint::send(const Posting& message, const Patience& patience) {
  check_not_forked(owner_);
  TransferPtr transfer;
  {
    const std::lock_guard lock(mutex_);
    check_usable();
    const PeerLink& link = links_[static_cast<std::size_t>(message.peer)];
    if (message.peer != rank_ && link.presence == Presence::here &&
        sends_.send_now(message.place, message.peer, message.tag, message.context))
      return;
    transfer = transfer_of(message, true);
    start(transfer);
  }
  end_call(transfer, message, patience);
}

MessageStatus Endpoint::receive(const Posting& message, const Patience& patience) {
  check_not_forked(owner_);
  const TransferPtr transfer = transfer_of(message, false);
  {
    const std::lock_guard lock(mutex_);
    start(transfer);
  }
  return end_call(transfer, message, patience);
}

// A call that throws leaves nothing behind that uses the caller's memory. One that has ended after
// all ends as if it hadn't met its deadline.
MessageStatus Endpoint::end_call(const TransferPtr& transfer, const Posting& message,
                                 const Patience& patience) {
  const auto is_over = [&] { return transfer->done.load(std::memory_order_relaxed); };
  try {
    if (!transfer->done.load(std::memory_order_acquire)) wait_until(is_over, message, patience);
  } catch (...) {
    if (cancel(transfer)) throw;
    withdraw(transfer);
    if (!transfer->done.load(std::memory_order_acquire)) throw;
  }
  if (transfer->error) std::rethrow_exception(transfer->error);
  return transfer->status;
}

TransferPtr Endpoint::start_send(const Posting& message) {
  check_not_forked(owner_);
  const TransferPtr transfer = transfer_of(message, true);
  const std::lock_guard lock(mutex_);
  start(transfer);
  leave_to_service();
  return transfer;
}

TransferPtr Endpoint::start_receive(const Posting& message) {
  check_not_forked(owner_);
  const TransferPtr transfer = transfer_of(message, false);
  const std::lock_guard lock(mutex_);
  start(transfer);
  leave_to_service();
  return transfer;
}

MessageStatus Endpoint::wait(const TransferPtr& transfer, const Patience& patience) {
  check_not_forked(owner_);
  if (!transfer->done.load(std::memory_order_acquire)) {
    wait_until([&] { return transfer->done.load(std::memory_order_relaxed); },
               posting_of(*transfer), patience);
  }
  if (transfer->error) std::rethrow_exception(transfer->error);
  return transfer->status;
}

bool Endpoint::test(const TransferPtr& transfer) {
  check_not_forked(owner_);
  if (!transfer->done.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    progress();
    leave_to_service();
    if (!transfer->done.load(std::memory_order_acquire)) return false;
  }
  if (transfer->error) std::rethrow_exception(transfer->error);
  return true;
}

bool Endpoint::cancel(const TransferPtr& transfer) {
  check_not_forked(owner_);
  const std::lock_guard lock(mutex_);
  if (transfer->done.load(std::memory_order_relaxed)) return false;
  if (transfer->sends) {
    if (!sends_.cancel(*transfer)) return false;
  } else {
    receives_.cancel(transfer);
  }
  transfer->finish(
      std::make_exception_ptr(Error(Errc::cancelled, transfer->text() + ": cancelled")));
  own_.ring();
  return true;
}

std::optional<MessageStatus> Endpoint::probe(const Posting& message,
                                             const std::optional<Patience>& patience) {
  check_not_forked(owner_);
  std::optional<MessageStatus> found;
  std::exception_ptr lost;
  const Address wanted{message.context, message.peer, message.tag};
  const auto is_over = [&] {
    check_usable();
    found = receives_.find(wanted, *message.group);
    if (found) return true;
    for (const int rank : message.group->world) {
      const PeerLink& link = links_[static_cast<std::size_t>(rank)];
      const bool any = message.peer == any_source && link.presence == Presence::lost;
      if (any || (message.peer == rank && link.presence != Presence::here))
        lost = loss_of(*message.group, rank, link, "probe");
    }
    return lost != nullptr;
  };
  if (patience) {
    wait_until(is_over, message, *patience);
  } else {
    const std::lock_guard lock(mutex_);
    progress();
    is_over();
  }
  if (!found && lost) std::rethrow_exception(lost);
  return found;
}

void Endpoint::withdraw(const TransferPtr& transfer) {
  if (transfer->done.load(std::memory_order_acquire) || cancel(transfer)) return;
  try {
    wait_until([&] { return transfer->done.load(std::memory_order_relaxed); },
               posting_of(*transfer), {1, {}});
  } catch (...) {
    log(LogLevel::warning, transfer->text() + ": given up while its receiver reads the memory");
  }
}

void Endpoint::abort(const Group& group, std::uint32_t context, const std::string& why) noexcept {
  if (process_id() != owner_) return;
  try {
    const std::lock_guard lock(mutex_);
    const std::string text =
        fmt::format("a collective failed on rank {}: {}", group.rank, why).substr(0, 1000);
    receives_.note_abort(context, text);
    for (const int peer : group.world) {
      const PeerLink& link = links_[static_cast<std::size_t>(peer)];
      if (peer != rank_ && link.presence == Presence::here) sends_.send_abort(peer, context, text);
    }
    end_aborted(context);
  } catch (...) {
    // The others have their own deadlines.
  }
}

void Endpoint::end_aborted(std::uint32_t context) {
  const std::string why = *receives_.abort_of(context);
  const auto belongs = [&](const MessageTransfer& transfer) { return transfer.context == context; };
  const auto error = [&](const MessageTransfer&) {
    return std::make_exception_ptr(Error(Errc::cancelled, why));
  };
  receives_.drop_if(belongs, error);
  sends_.drop(-1, belongs, error);
}

void Endpoint::use_context(std::uint32_t context) noexcept {
  std::uint32_t seen = context_.load();
  while (seen < context + 2 && !context_.compare_exchange_weak(seen, context + 2)) {
  }
}

void Endpoint::check(const Group& group, CallKind operation, std::uint32_t context) {
  check_not_forked(owner_);
  const std::lock_guard lock(mutex_);
  check_usable();
  if (const std::string* const why = receives_.abort_of(context)) fail(Errc::cancelled, *why);
  for (const int rank : group.world) {
    const PeerLink& link = links_[static_cast<std::size_t>(rank)];
    if (link.presence == Presence::lost)
      std::rethrow_exception(loss_of(group, rank, link, std::string(name(operation))));
  }
}

bool Endpoint::is_closed() {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::string Endpoint::close(double seconds) {
  check_not_forked(owner_);
  Posting what;
  what.operation = CallKind::close;
  what.peer = any_source;
  what.group = std::make_shared<Group>();
  std::string open;
  try {
    if (!is_closed())
      wait_until([&] { return closed_ || sends_.pending().empty(); }, what, {seconds, {}});
  } catch (const Error&) {
    // Said below.
  }
  const std::lock_guard lock(mutex_);
  if (closed_) return open;
  for (const TransferPtr& each : sends_.pending()) {
    open += (open.empty() ? "closed before these were received: " : ", ") + each->text();
    sends_.cancel(*each);
    each->finish(std::make_exception_ptr(
        Error(Errc::cancelled, each->text() + ": the communicator was closed")));
  }
  closed_ = true;
  const auto error = [](const MessageTransfer& transfer) {
    return std::make_exception_ptr(
        Error(Errc::cancelled, transfer.text() + ": the communicator was closed"));
  };
  receives_.drop_if([](const MessageTransfer&) { return true; }, error);
  segment_->words(rank_).left.store(1, std::memory_order_seq_cst);
  segment_->departures().fetch_add(1, std::memory_order_seq_cst);
  for (int peer = 0; peer < size(); ++peer) links_[static_cast<std::size_t>(peer)].bell.ring();
  return open;
}

// Whether there may be more to do at once.
bool Endpoint::serve_once() {
  const std::lock_guard lock(mutex_);
  if (attended_ > 0 || closed_) return false;
  if (!receives_.has_large() && !sends_.has_large()) return false;
  // Armed first: what comes while it looks wakes it again.
  own_.arm(Doorbell::service);
  try {
    return progress();
  } catch (const std::exception& error) {
    log(LogLevel::error, std::string("messages: ") + error.what());
    return false;  // The calls meet it too.
  }
}

void Endpoint::note_end(int rank) {
  const std::lock_guard lock(mutex_);
  look_for_departures();
  lose(rank, Presence::lost, "has ended");
}

}  // namespace quadriga::message
