// SPDX-License-Identifier: BSD-3-Clause
// src/message/collective.cpp: agreement, trees, and how a failed collective ends everywhere.
#include "message/collective.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/random.h"

namespace quadriga::message {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t fingerprint(const CollectiveTerms& terms) noexcept {
  std::uint64_t value = mix(static_cast<std::uint64_t>(terms.operation));
  value = mix(value ^ static_cast<std::uint64_t>(terms.root + 1));
  value = mix(value ^ static_cast<std::uint64_t>(terms.reduction + 1));
  value = mix(value ^ terms.elements.count());
  value = mix(value ^ terms.elements.hash());
  value = mix(value ^ terms.detail);
  // Ranks with faults agree with nobody, another with the same fault included.
  return terms.fault.empty() ? value & ~std::uint64_t{1} : value | 1;
}

}  // namespace

MessageBuffer bytes_place(const void* data, std::size_t bytes) {
  return {Layout::contiguous(static_cast<std::int64_t>(bytes), ElementType::bytes),
          static_cast<std::byte*>(const_cast<void*>(data))};
}

bool overlap(const MessageBuffer& a, const MessageBuffer& b) noexcept {
  const auto [a_first, a_last] = a.layout.bounds();
  const auto [b_first, b_last] = b.layout.bounds();
  const auto at = [](const MessageBuffer& buffer, std::int64_t offset) {
    return reinterpret_cast<std::intptr_t>(buffer.data) + offset;
  };
  return at(a, a_first) < at(b, b_last) && at(b, b_first) < at(a, a_last);
}

std::string CollectiveTerms::text() const {
  std::string text = fmt::format("{} of {}", name(operation), elements.text());
  const bool is_of_pairs = operation >= CallKind::gatherv && operation != CallKind::allgatherv;
  if (operation == CallKind::barrier || operation == CallKind::split || is_of_pairs)
    text = name(operation);
  if (root >= 0) text += fmt::format(", root {}", root);
  if (reduction >= 0) text += fmt::format(", {}", name(static_cast<ReduceOperation>(reduction)));
  if (!detail_text.empty()) text += ", " + detail_text;
  return fault.empty() ? text : text + ": " + fault;
}

Collective::Collective(CommunicatorCore& communicator, CallKind operation, const Patience& patience)
    : communicator_(communicator),
      operation_(operation),
      patience_(patience),
      begin_(Clock::now()),
      tag_((communicator.collectives_ & 0xfffff) * lanes) {
  communicator.collectives_ = (communicator.collectives_ + 1) & 0x3fffffff;
}

void Collective::run(const CollectiveTerms& terms, const std::function<void()>& steps) {
  Endpoint& endpoint = communicator_.endpoint();
  const std::uint64_t context = communicator_.context_ + 1;
  endpoint.check(*communicator_.group_, operation_, context);
  const Group& group = *communicator_.group_;
  if (communicator_.times_) *communicator_.times_ = {operation_};
  try {
    agree(terms);
    agreed_ = true;
    note(&CollectiveTimes::agreed);
    steps();
    note(&CollectiveTimes::ended);
  } catch (const PeerLost& error) {
    const int rank = error.rank() < 0 ? -1 : group.world[static_cast<std::size_t>(error.rank())];
    // One that has left lives, and may have left because another is lost.
    const int lost = rank >= 0 && endpoint.presence(rank) == Presence::lost ? rank : -1;
    endpoint.abort(group, context, error.what(), lost);
    throw;
  } catch (const Error& error) {
    // Differences are told to all; the communicator stays usable.
    if (agreed_ || error.code() != Errc::invalid_argument)
      endpoint.abort(group, context, error.what(), -1);
    throw;
  } catch (...) {
    endpoint.abort(group, context, fmt::format("{} was interrupted", name(operation_)), -1);
    throw;
  }
}

void Collective::agree_again(const CollectiveTerms& terms) {
  agreed_ = false;
  agree(terms);
  agreed_ = true;
}

// Least and greatest fingerprint of all ranks, and what all offer: each round multiplies the ranks
// that are known about. One round for few ranks, who then have what each tells.
void Collective::agree(const CollectiveTerms& terms) {
  const std::uint64_t own = fingerprint(terms);
  Announcement words{own, own, terms.offer, terms.nccl, terms.told ? 1U : 0U, {}};
  if (terms.told) std::ranges::copy(*terms.told, words.data.begin());
  own_ = words.data;
  for (int distance = 1; distance < size(); distance *= told_at_once + 1) {
    const int others = std::min(told_at_once, (size() - 1) / distance);
    const std::span heard = std::span(heard_).first(static_cast<std::size_t>(others));
    tell(words, distance, heard);
    for (int i = 0; i < others; ++i) {
      const Announcement& other = heard[static_cast<std::size_t>(i)];
      const int from = (rank() + size() - (i + 1) * distance) % size();
      if (!other.offer.is_valid())
        throw PeerLost(from, fmt::format("{}: rank {} is lost: it offered rates or times that "
                                         "aren't any",
                                         name(operation_), from));
      words.least = std::min(words.least, other.least);
      words.greatest = std::max(words.greatest, other.greatest);
      words.offer = words.offer.and_also(other.offer);
      words.nccl = words.nccl.and_also(other.nccl);
      words.tells = words.tells != 0 && other.tells != 0 ? 1 : 0;
    }
  }
  if (words.least != words.greatest || words.least % 2 == 1) tell_differences(terms);
  offer_ = words.offer;
  nccl_ = words.nccl;
  has_told_ = words.tells != 0 && size() <= told_at_once + 1;
}

// The ranks that are once, twice, thrice so far ahead, and hears of those behind.
void Collective::tell(const Announcement& mine, int distance, std::span<Announcement> others) {
  std::vector<TransferPtr> all;
  all.reserve(2 * others.size());
  for (std::size_t i = 0; i < others.size(); ++i) {
    const int far = static_cast<int>(i + 1) * distance;
    all.push_back(
        start_receive((rank() + size() - far) % size(), &others[i], sizeof(Announcement)));
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    const int far = static_cast<int>(i + 1) * distance;
    all.push_back(start_send((rank() + far) % size(), &mine, sizeof mine));
  }
  wait(all);
}

const std::byte* Collective::told(int rank) const noexcept {
  const int behind = (this->rank() + size() - rank) % size();
  return behind == 0 ? own_.data() : heard_[static_cast<std::size_t>(behind - 1)].data.data();
}

void Collective::tell_differences(const CollectiveTerms& terms) {
  using Line = std::array<char, 256>;
  Line own{};
  const std::string text = terms.text();
  std::memcpy(own.data(), text.data(), std::min(text.size(), own.size() - 1));
  std::vector<Line> all(static_cast<std::size_t>(size()));
  if (rank() == 0) {
    all[0] = own;
    for (int from = 1; from < size(); ++from)
      receive(from, all[static_cast<std::size_t>(from)].data(), own.size());
    for (int to = 1; to < size(); ++to) send(to, all.data(), all.size() * own.size());
  } else {
    send(0, own.data(), own.size());
    receive(0, all.data(), all.size() * own.size());
  }
  std::string message = "the ranks' collectives differ:";
  if (size() == 1) message.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].back() = '\0';
    message += size() == 1 ? std::string(all[i].data())
                           : fmt::format("{} rank {}: {}", i == 0 ? "" : ";", i, all[i].data());
  }
  fail(Errc::invalid_argument, message);
}

Patience Collective::left() const { return {patience_.seconds, patience_.interrupt, begin_}; }

void Collective::note(double CollectiveTimes::*what) const {
  if (CollectiveTimes* const times = communicator_.times_.get())
    times->*what = std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Collective::note_told() const {
  if (CollectiveTimes* const times = communicator_.times_.get())
    times->plan = fmt::format("{}: with the agreement", name(operation_));
  note(&CollectiveTimes::packed);
  note(&CollectiveTimes::moved);
}

void Collective::note_nccl(const std::string& version, double seconds) const {
  if (CollectiveTimes* const times = communicator_.times_.get()) {
    times->by = "NCCL " + version;
    times->plan = fmt::format("{} by NCCL {}", name(operation_), version);
    times->planned = seconds;
    times->steps.clear();
  }
  note(&CollectiveTimes::packed);
}

std::shared_ptr<const RankSteps> Collective::planned(const CollectiveShape& shape,
                                                     const TreeOptions& options) const {
  const StepCache::Known& known =
      communicator_.known_.known(size(), rank(), shape, options, offer_);
  if (CollectiveTimes* const times = communicator_.times_.get()) {
    times->plan = known.plan;
    times->planned = known.seconds;
  }
  return known.steps;
}

Posting Collective::message(int peer, const MessageBuffer& place, int lane) const {
  const int world = communicator_.group_->world[static_cast<std::size_t>(peer)];
  return {place, world, tag_ + lane, communicator_.context_ + 1, communicator_.group_, operation_};
}

void Collective::send_place(int to, const MessageBuffer& place) {
  communicator_.endpoint().send(message(to, place), left());
}
void Collective::receive_place(int from, const MessageBuffer& place) {
  communicator_.endpoint().receive(message(from, place), left());
}
void Collective::send(int to, const void* data, std::size_t bytes) {
  send_place(to, bytes_place(data, bytes));
}
void Collective::receive(int from, void* data, std::size_t bytes) {
  receive_place(from, bytes_place(data, bytes));
}
TransferPtr Collective::start_send(int to, const void* data, std::size_t bytes) {
  return communicator_.endpoint().start_send(message(to, bytes_place(data, bytes)));
}
TransferPtr Collective::start_receive(int from, void* data, std::size_t bytes) {
  return communicator_.endpoint().start_receive(message(from, bytes_place(data, bytes)));
}

// Whatever happens, nothing of it uses the memory afterwards.
void Collective::wait(const std::vector<TransferPtr>& transfers) {
  try {
    for (const TransferPtr& each : transfers) communicator_.endpoint().wait(each, left());
  } catch (...) {
    withdraw(transfers);
    throw;
  }
}

void Collective::withdraw(const std::vector<TransferPtr>& transfers) {
  for (const TransferPtr& each : transfers) communicator_.endpoint().withdraw(each);
}

void Collective::await_work(const std::function<bool()>& is_over, const char* late) const {
  Posting what;
  what.operation = operation_;
  what.peer = any_source;
  what.context = communicator_.context_ + 1;
  what.group = communicator_.group_;
  communicator_.endpoint().await_work(is_over, what, left(), late);
}

void Collective::all_to_all(const void* from, std::size_t from_step, void* into,
                            std::size_t bytes) {
  const auto* const given = static_cast<const std::byte*>(from);
  auto* const got = static_cast<std::byte*>(into);
  const auto at = [](int rank, std::size_t step) { return static_cast<std::size_t>(rank) * step; };
  std::vector<TransferPtr> all;
  for (int distance = 1; distance < size(); ++distance) {
    const int source = (rank() + size() - distance) % size();
    all.push_back(start_receive(source, got + at(source, bytes), bytes));
  }
  // Beginning with the nearest, so that not all send to the same rank first.
  for (int distance = 1; distance < size(); ++distance) {
    const int target = (rank() + distance) % size();
    all.push_back(start_send(target, given + at(target, from_step), bytes));
  }
  std::memcpy(got + at(rank(), bytes), given + at(rank(), from_step), bytes);
  wait(all);
}

TransferPtr Collective::start_move(const MessageBuffer& into, std::shared_ptr<DeviceMove> move) {
  return communicator_.endpoint().start_move(message(rank(), into), std::move(move));
}

void Collective::copy(const MessageBuffer& from, const MessageBuffer& into) {
  if (from.on_device() || into.on_device())
    wait({start_move(into, move_between(from, into))});
  else
    copy_on_host(from, into);
}

void Collective::take(const RankSteps& steps, const PlaceOf& places, const Reducing& reducing) {
  const Room work(reducing.home, static_cast<std::size_t>(steps.work_bytes));
  const Room stage({}, static_cast<std::size_t>(steps.stage_bytes));
  const ElementSignature& elements = reducing.elements;
  Endpoint& endpoint = communicator_.endpoint();
  // Steps on devices take no time of this thread; the host's are reductions and copies of its own.
  std::optional<Endpoint::Tending> tends;
  if (offer_.on_devices()) tends.emplace(endpoint);
  StepMeans means;
  means.start_send = [&](int peer, int lane, const MessageBuffer& place) {
    return endpoint.start_send(message(peer, place, lane));
  };
  means.start_receive = [&](int peer, int lane, const MessageBuffer& place) {
    return endpoint.start_receive(message(peer, place, lane));
  };
  means.wait_any = [&](std::span<const TransferPtr> open) { endpoint.wait_any(open, left()); };
  means.withdraw = [&](const TransferPtr& transfer) { endpoint.withdraw(transfer); };
  means.place = [&](const StepPlace& place, std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (place.buffer == StepBuffer::work) return work.at(place.offset, size);
    if (place.buffer == StepBuffer::stage) return stage.at(place.offset, size);
    return places(place, bytes);
  };
  means.start_copy = [&](const MessageBuffer& from, const MessageBuffer& into) {
    return start_move(into, move_between(from, into));
  };
  means.start_reduction = [&](const MessageBuffer& into, const MessageBuffer& from,
                              const MessageBuffer& with) {
    return start_move(into,
                      reduction_on_device(into, from, with, reducing.operation, elements.type()));
  };
  if (elements.count() > 0) {  // No elements have no type either.
    means.combine = combine_of(reducing.operation, elements.type());
    means.element_bytes = size_of(elements.type());
  }
  std::optional<StepTimes> times;
  if (communicator_.times_) means.times = &times.emplace(communicator_.times_->steps, begin_);
  note(&CollectiveTimes::packed);
  take_steps(steps, means);
  note(&CollectiveTimes::moved);
}

}  // namespace quadriga::message
