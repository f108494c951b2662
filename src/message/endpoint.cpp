// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint.cpp: calls, waits, losses, and the thread that serves while nobody calls.
#include "message/endpoint.h"

#include <fmt/format.h>
#include <poll.h>
#include <quadriga/error.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "base/process.h"
#include "base/thread.h"

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

// What a rank waits for, as one word: operation, peer + 1, tag + 1.
std::uint64_t waiting_word(const Message& what) noexcept {
  return static_cast<std::uint64_t>(what.operation) << 56 |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(what.peer + 1) & 0xffff) << 32 |
         static_cast<std::uint32_t>(what.tag + 1);
}

// The word is taken back when the wait ends.
struct WaitingNote {
  std::atomic<std::uint64_t>& word;
  ~WaitingNote() { word.store(0, std::memory_order_relaxed); }
};

Clock::time_point end_of(const Patience& patience, Clock::time_point begin) {
  if (patience.seconds < 0) return Clock::time_point::max();
  const std::chrono::duration<double> limit(std::min(patience.seconds, 1e9));
  return begin + std::chrono::duration_cast<Clock::duration>(limit);
}

std::string waiting_text(std::uint64_t word) {
  const auto operation = static_cast<Operation>(word >> 56);
  const int peer = static_cast<int>(word >> 32 & 0xffff) - 1;
  const int tag = static_cast<int>(word & 0xffffffff) - 1;
  if (operation == Operation::none) return "isn't inside a call";
  const std::string other = peer < 0 ? "any rank" : fmt::format("rank {}", peer);
  if (operation > Operation::probe) return fmt::format("{}, for {}", name(operation), other);
  return fmt::format("{} {} {}, {}", name(operation), operation == Operation::send ? "to" : "from",
                     other, tag < 0 ? "any tag" : fmt::format("tag {}", tag));
}

PeerLinks links_of(const Segment& segment, int rank, const std::vector<Member>& members) {
  PeerLinks links;
  for (int other = 0; other < segment.shape().ranks; ++other) {
    const Member& member = members[static_cast<std::size_t>(other)];
    links.emplace_back(segment, rank, other, member.event);
    links.back().pid = member.pid;
    links.back().process = member.process;
  }
  return links;
}

std::string text_of(const Message& what) {
  Transfer transfer;
  transfer.sends = what.operation == Operation::send;
  transfer.operation = what.operation;
  transfer.peer = what.peer;
  transfer.tag = what.tag;
  transfer.group = what.group;
  return transfer.text();
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

Endpoint::Endpoint(std::shared_ptr<Segment> segment, int rank, std::vector<Member> members)
    : segment_(std::move(segment)),
      rank_(rank),
      owner_(process_id()),
      members_(std::move(members)),
      own_(segment_->words(rank), members_[static_cast<std::size_t>(rank)].event),
      links_(links_of(*segment_, rank, members_)),
      sends_(*segment_, rank, links_),
      receives_(rank, links_) {
  if (members_[static_cast<std::size_t>(rank)].event >= 0 && size() > 1)
    service_ = start_thread([this] { serve(); });
}

std::vector<std::shared_ptr<Endpoint>> Endpoint::local(int ranks) {
  const auto segment = Segment::local(ranks);
  std::vector<int> events;
  for (int i = 0; i < ranks; ++i) events.push_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::vector<std::shared_ptr<Endpoint>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Member> members;
    for (const int event : events) members.push_back({dup(event), -1, getpid()});
    all.push_back(std::make_shared<Endpoint>(segment, rank, std::move(members)));
  }
  for (const int event : events) ::close(event);
  return all;
}

Endpoint::~Endpoint() {
  if (process_id() != owner_) {
    release();
    return;
  }
  const std::string open = close(patience_at_end);
  if (!open.empty()) log(LogLevel::warning, open);
  stopping_ = true;
  own_.wake_service();
  if (service_.joinable()) service_.join();
  for (const Member& each : members_) {
    if (each.event >= 0) ::close(each.event);
    if (each.process >= 0) ::close(each.process);
  }
}

// In a child after fork() the thread doesn't exist; its handle is let go.
void Endpoint::release() noexcept {
  if (service_.joinable()) service_.detach();
}

void Endpoint::check_usable() const {
  if (closed_) fail(Errc::unavailable, "the communicator is closed");
}

TransferPtr Endpoint::make(const Message& message, bool sends) const {
  auto transfer = std::make_shared<Transfer>();
  transfer->sends = sends;
  transfer->operation = message.operation;
  transfer->place = message.place;
  transfer->peer = message.peer;
  transfer->tag = message.tag;
  transfer->context = message.context;
  transfer->group = message.group;
  transfer->keep = message.keep;
  if (!sends && transfer->place.flat() == nullptr) transfer->place.layout.check_receives();
  return transfer;
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
  const auto also = [&](const Transfer& transfer) {
    const bool any = !transfer.sends && transfer.peer == any_source;
    if (presence == Presence::left) return any && is_alone(*transfer.group);
    return (any || transfer.operation > Operation::probe) && has(*transfer.group, peer);
  };
  const auto error = [&](const Transfer& transfer) { return loss_of(transfer, peer, link); };
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
void Endpoint::wait_until(const Over& is_over, const Message& what, const Patience& patience) {
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
                                     patience.seconds, waits()));
  }
}

void Endpoint::leave_to_service() noexcept {
  if (attended_ > 0 || !service_.joinable() || own_.armed(Doorbell::service)) return;
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

void Endpoint::send(const Message& message, const Patience& patience) {
  check_not_forked(owner_);
  TransferPtr transfer;
  {
    const std::lock_guard lock(mutex_);
    check_usable();
    const PeerLink& link = links_[static_cast<std::size_t>(message.peer)];
    if (message.peer != rank_ && link.presence == Presence::here &&
        sends_.send_now(message.place, message.peer, message.tag, message.context))
      return;
    transfer = make(message, true);
    start(transfer);
  }
  end_call(transfer, message, patience);
}

Status Endpoint::receive(const Message& message, const Patience& patience) {
  check_not_forked(owner_);
  const TransferPtr transfer = make(message, false);
  {
    const std::lock_guard lock(mutex_);
    start(transfer);
  }
  return end_call(transfer, message, patience);
}

// A call that throws leaves nothing behind that uses the caller's memory. One that has ended after
// all ends as if it hadn't met its deadline.
Status Endpoint::end_call(const TransferPtr& transfer, const Message& message,
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

TransferPtr Endpoint::start_send(const Message& message) {
  check_not_forked(owner_);
  const TransferPtr transfer = make(message, true);
  const std::lock_guard lock(mutex_);
  start(transfer);
  leave_to_service();
  return transfer;
}

TransferPtr Endpoint::start_receive(const Message& message) {
  check_not_forked(owner_);
  const TransferPtr transfer = make(message, false);
  const std::lock_guard lock(mutex_);
  start(transfer);
  leave_to_service();
  return transfer;
}

Status Endpoint::wait(const TransferPtr& transfer, const Patience& patience) {
  check_not_forked(owner_);
  if (!transfer->done.load(std::memory_order_acquire)) {
    Message what;
    what.operation = transfer->operation;
    what.peer = transfer->peer;
    what.tag = transfer->tag;
    what.group = transfer->group;
    wait_until([&] { return transfer->done.load(std::memory_order_relaxed); }, what, patience);
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

std::optional<Status> Endpoint::probe(const Message& message,
                                      const std::optional<Patience>& patience) {
  check_not_forked(owner_);
  std::optional<Status> found;
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
  Message what;
  what.operation = transfer->operation;
  what.peer = transfer->peer;
  what.group = transfer->group;
  try {
    wait_until([&] { return transfer->done.load(std::memory_order_relaxed); }, what, {1, {}});
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
  const auto belongs = [&](const Transfer& transfer) { return transfer.context == context; };
  const auto error = [&](const Transfer&) {
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

void Endpoint::check(const Group& group, Operation operation, std::uint32_t context) {
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

Presence Endpoint::presence(int rank) {
  const std::lock_guard lock(mutex_);
  progress();
  return links_[static_cast<std::size_t>(rank)].presence;
}

bool Endpoint::is_closed() {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::string Endpoint::waits() const {
  std::string text = "Ranks of the world wait for:";
  for (int rank = 0; rank < segment_->shape().ranks; ++rank) {
    const std::uint64_t word = segment_->words(rank).waiting.load(std::memory_order_relaxed);
    text += fmt::format("{} rank {}: {}", rank == 0 ? "" : ";", rank, waiting_text(word));
  }
  return text;
}

std::string Endpoint::close(double seconds) {
  check_not_forked(owner_);
  Message what;
  what.operation = Operation::close;
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
  const auto error = [](const Transfer& transfer) {
    return std::make_exception_ptr(
        Error(Errc::cancelled, transfer.text() + ": the communicator was closed"));
  };
  receives_.drop_if([](const Transfer&) { return true; }, error);
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

void Endpoint::serve() {
  std::vector<pollfd> asked{{members_[static_cast<std::size_t>(rank_)].event, POLLIN, 0}};
  std::vector<int> ranks{rank_};
  for (int rank = 0; rank < size(); ++rank) {
    const int process = members_[static_cast<std::size_t>(rank)].process;
    if (rank == rank_ || process < 0) continue;
    asked.push_back({process, POLLIN, 0});
    ranks.push_back(rank);
  }
  while (!stopping_) {
    if (poll(asked.data(), asked.size(), -1) < 0) continue;
    std::uint64_t count = 0;
    if (asked[0].revents) static_cast<void>(read(asked[0].fd, &count, sizeof count));
    for (std::size_t i = 1; i < asked.size(); ++i) {
      if (!asked[i].revents) continue;
      asked[i].fd = -1;  // An ended process stays readable.
      const std::lock_guard lock(mutex_);
      look_for_departures();
      lose(ranks[i], Presence::lost, "has ended");
    }
    while (!stopping_ && serve_once()) {
    }
  }
}

}  // namespace quadriga::message
