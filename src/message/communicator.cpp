// SPDX-License-Identifier: BSD-3-Clause
// src/message/communicator.cpp: messages by the communicator's ranks, and its collectives.
#include "message/communicator.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <tuple>

#include "base/random.h"
#include "message/collective.h"
#include "message/nccl/collectives.h"

namespace quadriga::message {
namespace {

std::shared_ptr<const Group> world_of(const Endpoint& endpoint) {
  auto group = std::make_shared<Group>();
  group->world.resize(static_cast<std::size_t>(endpoint.size()));
  std::iota(group->world.begin(), group->world.end(), 0);
  group->rank = endpoint.rank();
  return group;
}

void check_rank(int rank, int size, const char* what) {
  if (rank < 0 || rank >= size)
    fail(Errc::invalid_argument, fmt::format("{} is {}; expected 0 to {}", what, rank, size - 1));
}

}  // namespace

CommunicatorCore::CommunicatorCore(std::shared_ptr<Endpoint> endpoint)
    : endpoint_(std::move(endpoint)),
      group_(world_of(*endpoint_)),
      nccl_(std::make_shared<NcclGroups>()) {}

CommunicatorCore::CommunicatorCore(std::shared_ptr<Endpoint> endpoint,
                                   std::shared_ptr<const Group> group, std::uint64_t context)
    : endpoint_(std::move(endpoint)),
      group_(std::move(group)),
      context_(context),
      nccl_(std::make_shared<NcclGroups>()) {}

CommunicatorCore CommunicatorCore::apart(std::uint64_t number) const {
  CommunicatorCore made(endpoint_, group_,
                        mix(mix(context_ + 1) + mix(~number)) & ~std::uint64_t{1});
  made.nccl_ = nullptr;
  return made;
}

void CommunicatorCore::give_up(const std::string& why) const noexcept {
  endpoint_->abort(*group_, context_ + 1, why, -1);
}

Posting CommunicatorCore::message(const MessageBuffer& place, int peer, int tag,
                                  CallKind operation) const {
  const bool any = operation != CallKind::send;
  if (!(any && peer == any_source))
    check_rank(peer, size(), operation == CallKind::send ? "send: destination" : "recv: source");
  if (tag < 0 && !(any && tag == any_tag))
    fail(Errc::invalid_argument,
         fmt::format("{}: tag is {}; expected 0 to 2147483647", name(operation), tag));
  const int world = peer == any_source ? any_source : group_->world[static_cast<std::size_t>(peer)];
  return {place, world, tag, context_, group_, operation};
}

void CommunicatorCore::send(const MessageBuffer& place, int destination, int tag,
                            const Patience& patience, std::shared_ptr<StreamOrder> order,
                            std::shared_ptr<void> keep) const {
  Posting made = message(place, destination, tag, CallKind::send);
  made.order = std::move(order);
  made.keep = std::move(keep);
  endpoint_->send(made, patience);
}

MessageStatus CommunicatorCore::receive(const MessageBuffer& place, int source, int tag,
                                        const Patience& patience,
                                        std::shared_ptr<StreamOrder> order) const {
  Posting made = message(place, source, tag, CallKind::recv);
  made.order = std::move(order);
  return endpoint_->receive(made, patience);
}

TransferPtr CommunicatorCore::start_send(const MessageBuffer& place, int destination, int tag,
                                         std::shared_ptr<void> keep,
                                         std::shared_ptr<StreamOrder> order) const {
  Posting made = message(place, destination, tag, CallKind::send);
  made.keep = std::move(keep);
  made.order = std::move(order);
  return endpoint_->start_send(made);
}

TransferPtr CommunicatorCore::start_receive(const MessageBuffer& place, int source, int tag,
                                            std::shared_ptr<void> keep,
                                            std::shared_ptr<StreamOrder> order) const {
  Posting made = message(place, source, tag, CallKind::recv);
  made.keep = std::move(keep);
  made.order = std::move(order);
  return endpoint_->start_receive(made);
}

MessageStatus CommunicatorCore::send_receive(const MessageBuffer& from, int destination,
                                             int send_tag, const MessageBuffer& into, int source,
                                             int receive_tag, Patience patience,
                                             std::shared_ptr<StreamOrder> send_order,
                                             std::shared_ptr<StreamOrder> receive_order,
                                             std::shared_ptr<void> send_keep) const {
  patience.since = std::chrono::steady_clock::now();
  const TransferPtr arriving =
      start_receive(into, source, receive_tag, {}, std::move(receive_order));
  try {
    send(from, destination, send_tag, patience, std::move(send_order), std::move(send_keep));
    return endpoint_->wait(arriving, patience);
  } catch (...) {
    endpoint_->withdraw(arriving);
    throw;
  }
}

std::optional<MessageStatus> CommunicatorCore::probe(
    int source, int tag, const std::optional<Patience>& patience) const {
  return endpoint_->probe(message({}, source, tag, CallKind::probe), patience);
}

std::vector<PredictedPath> CommunicatorCore::predict(const MessageBuffer& from, int destination,
                                                     const MessageBuffer& into) const {
  check_rank(destination, size(), "predict: destination");
  return endpoint_->predict(from, group_->world[static_cast<std::size_t>(destination)], into);
}

ExchangeTransfers CommunicatorCore::plan(const std::vector<PlannedMessage>& sends,
                                         const std::vector<PlannedMessage>& receives,
                                         std::shared_ptr<void> keep) const {
  std::vector<std::optional<std::uintptr_t>> streams;
  const auto postings = [&](const std::vector<PlannedMessage>& from, CallKind operation) {
    std::vector<Posting> made;
    for (const PlannedMessage& each : from) {
      made.push_back(message(each.place, each.peer, each.tag, operation));
      streams.push_back(each.place.on_device() ? each.stream : std::nullopt);
    }
    return made;
  };
  const std::vector<Posting> arriving = postings(receives, CallKind::recv);
  const std::vector<Posting> leaving = postings(sends, CallKind::send);
  return {endpoint_, arriving, leaving, std::move(keep), std::move(streams)};
}

void CommunicatorCore::await_stream(const std::shared_ptr<StreamOrder>& order, CallKind kind,
                                    const Patience& patience) {
  if (!order) return;
  Posting what;
  what.operation = kind;
  what.context = context_ + 1;
  what.group = group_;
  try {
    endpoint_->await_stream(*order, what, patience);
  } catch (const PeerLost&) {
    throw;  // The others find out.
  } catch (const Error& error) {
    if (error.code() == Errc::device_lost)
      refuse(kind, error.what(), patience);
    else
      give_up(error.what());
    throw;
  } catch (...) {
    give_up("its call was interrupted");
    throw;
  }
}

void CommunicatorCore::refuse(CallKind kind, const std::string& why, const Patience& patience) {
  Collective(*this, kind, patience).run({kind, -1, -1, {}, why}, [] {});
}

void CommunicatorCore::barrier(const Patience& patience) {
  Collective(*this, CallKind::barrier, patience).run({CallKind::barrier}, [] {});
}

std::optional<CommunicatorCore> CommunicatorCore::split(int color, int key,
                                                        const Patience& patience) {
  struct Wish {
    std::int32_t color, key;
  };
  Collective collective(*this, CallKind::split, patience);
  std::vector<Wish> wishes(static_cast<std::size_t>(size()));
  const Wish own{color, key};
  // The same on all ranks, and another for each split of each communicator, but for chance.
  const std::uint64_t number = static_cast<std::uint64_t>(collectives_);
  const std::uint64_t context = mix(mix(context_ + 1) ^ number) & ~std::uint64_t{1};
  collective.run({CallKind::split},
                 [&] { collective.all_to_all(&own, 0, wishes.data(), sizeof own); });
  if (color < 0) return std::nullopt;
  std::vector<std::pair<int, int>> members;  // Key, rank.
  for (int other = 0; other < size(); ++other) {
    const Wish& wish = wishes[static_cast<std::size_t>(other)];
    if (wish.color == color) members.emplace_back(wish.key, other);
  }
  std::sort(members.begin(), members.end());
  auto group = std::make_shared<Group>();
  for (const auto& [_, other] : members) {
    if (other == rank()) group->rank = static_cast<int>(group->world.size());
    group->world.push_back(group_->world[static_cast<std::size_t>(other)]);
  }
  return CommunicatorCore(endpoint_, std::move(group), context);
}

}  // namespace quadriga::message
