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

// The elements of a part, if a whole is made of one for each rank: what all ranks must agree on.
std::string part_fault(const MessageBuffer& whole, const MessageBuffer& part, int ranks) {
  if (whole.layout.elements() == part.layout.elements().repeated(static_cast<std::uint64_t>(ranks)))
    return {};
  return fmt::format("the array of all parts has {}, expected {} times {}",
                     whole.layout.elements().text(), ranks, part.layout.elements().text());
}

std::string overlap_fault(const MessageBuffer& into) {
  return into.flat() == nullptr && into.layout.overlapping() ? "elements to be received overlap"
                                                             : "";
}

std::string first_of(std::string a, std::string b) { return a.empty() ? b : a; }

std::string root_fault(int root, int size) {
  return root < 0 || root >= size ? fmt::format("expected a root from 0 to {}", size - 1) : "";
}

}  // namespace

CommunicatorCore::CommunicatorCore(std::shared_ptr<Endpoint> endpoint)
    : endpoint_(std::move(endpoint)), group_(world_of(*endpoint_)) {}

CommunicatorCore::CommunicatorCore(std::shared_ptr<Endpoint> endpoint,
                                   std::shared_ptr<const Group> group, std::uint64_t context)
    : endpoint_(std::move(endpoint)), group_(std::move(group)), context_(context) {}

CommunicatorCore CommunicatorCore::apart(std::uint64_t number) const {
  return {endpoint_, group_, mix(mix(context_ + 1) + mix(~number)) & ~std::uint64_t{1}};
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
                            const Patience& patience) const {
  endpoint_->send(message(place, destination, tag, CallKind::send), patience);
}

MessageStatus CommunicatorCore::receive(const MessageBuffer& place, int source, int tag,
                                        const Patience& patience) const {
  return endpoint_->receive(message(place, source, tag, CallKind::recv), patience);
}

TransferPtr CommunicatorCore::start_send(const MessageBuffer& place, int destination, int tag,
                                         std::shared_ptr<void> keep) const {
  Posting made = message(place, destination, tag, CallKind::send);
  made.keep = std::move(keep);
  return endpoint_->start_send(made);
}

TransferPtr CommunicatorCore::start_receive(const MessageBuffer& place, int source, int tag,
                                            std::shared_ptr<void> keep) const {
  Posting made = message(place, source, tag, CallKind::recv);
  made.keep = std::move(keep);
  return endpoint_->start_receive(made);
}

MessageStatus CommunicatorCore::send_receive(const MessageBuffer& from, int destination,
                                             int send_tag, const MessageBuffer& into, int source,
                                             int receive_tag, Patience patience) const {
  patience.since = std::chrono::steady_clock::now();
  const TransferPtr arriving = start_receive(into, source, receive_tag);
  try {
    send(from, destination, send_tag, patience);
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

ExchangeTransfers CommunicatorCore::plan(const std::vector<PlannedMessage>& sends,
                                         const std::vector<PlannedMessage>& receives,
                                         std::shared_ptr<void> keep) const {
  const auto postings = [&](const std::vector<PlannedMessage>& from, CallKind operation) {
    std::vector<Posting> made;
    for (const PlannedMessage& each : from)
      made.push_back(message(each.place, each.peer, each.tag, operation));
    return made;
  };
  return {endpoint_, postings(receives, CallKind::recv), postings(sends, CallKind::send),
          std::move(keep)};
}

void CommunicatorCore::refuse(CallKind kind, const std::string& why, const Patience& patience) {
  Collective(*this, kind, patience).run({kind, -1, -1, {}, why}, [] {});
}

void CommunicatorCore::barrier(const Patience& patience) {
  Collective(*this, CallKind::barrier, patience).run({CallKind::barrier}, [] {});
}

void CommunicatorCore::broadcast(const MessageBuffer& place, int root, const Patience& patience) {
  Collective collective(*this, CallKind::bcast, patience);
  const bool receives = rank() != root;
  const std::string fault =
      first_of(root_fault(root, size()), receives ? overlap_fault(place) : std::string());
  collective.run({CallKind::bcast, root, -1, place.layout.elements(), fault},
                 [&] { collective.broadcast(place, root); });
}

namespace {

// What keeps a rank from reducing: elements of several types, or an operation they don't have.
std::string reduction_fault(const MessageBuffer& from, const MessageBuffer* into,
                            ReduceOperation operation) {
  const ElementSignature& elements = from.layout.elements();
  if (elements.count() == 0)
    return into != nullptr && into->bytes() > 0 ? "nothing is reduced" : "";
  if (!elements.uniform()) return "elements are of several types";
  if (into != nullptr && !(into->layout.elements() == elements))
    return fmt::format("the result's elements are {}", into->layout.elements().text());
  try {
    static_cast<void>(combine_of(operation, elements.type()));
  } catch (const Error& error) {
    return error.what();
  }
  return into != nullptr ? overlap_fault(*into) : std::string();
}

// No elements have no type either.
Combine combine_for(ReduceOperation operation, const ElementSignature& elements) {
  if (elements.count() == 0) return [](std::byte*, const std::byte*, std::size_t) {};
  return combine_of(operation, elements.type());
}

}  // namespace

void CommunicatorCore::reduce(const MessageBuffer& from, const MessageBuffer& into,
                              ReduceOperation operation, int root, const Patience& patience) {
  Collective collective(*this, CallKind::reduce, patience);
  const bool is_root = rank() == root;
  const std::string fault = first_of(root_fault(root, size()),
                                     reduction_fault(from, is_root ? &into : nullptr, operation));
  const ElementSignature elements = from.layout.elements();
  collective.run({CallKind::reduce, root, static_cast<int>(operation), elements, fault}, [&] {
    const PackedPlace own(from, true);
    std::vector<std::byte> sum(own.data(), own.data() + own.bytes());
    collective.reduce(sum.data(), sum.size(), elements.count(), combine_for(operation, elements),
                      root);
    if (!is_root) return;
    const PackedPlace result(into, false);
    if (!sum.empty()) std::memcpy(result.data(), sum.data(), sum.size());
    result.write_back();
  });
}

void CommunicatorCore::all_reduce(const MessageBuffer& from, const MessageBuffer& into,
                                  ReduceOperation operation, const Patience& patience) {
  Collective collective(*this, CallKind::allreduce, patience);
  const ElementSignature elements = from.layout.elements();
  const std::string fault = reduction_fault(from, &into, operation);
  collective.run({CallKind::allreduce, -1, static_cast<int>(operation), elements, fault}, [&] {
    const PackedPlace own(from, true), result(into, false);
    if (own.bytes() > 0 && own.data() != result.data())
      std::memmove(result.data(), own.data(), own.bytes());
    collective.reduce(result.data(), result.bytes(), elements.count(),
                      combine_for(operation, elements), 0);
    const MessageBuffer whole{
        Layout::contiguous(static_cast<std::int64_t>(result.bytes()), ElementType::bytes),
        result.data()};
    collective.broadcast(whole, 0);
    result.write_back();
  });
}

void CommunicatorCore::gather(const MessageBuffer& from, const MessageBuffer& into, int root,
                              const Patience& patience) {
  Collective collective(*this, CallKind::gather, patience);
  std::string fault = root_fault(root, size());
  if (rank() == root)
    fault = first_of(fault, first_of(part_fault(into, from, size()), overlap_fault(into)));
  collective.run({CallKind::gather, root, -1, from.layout.elements(), fault}, [&] {
    const PackedPlace own(from, true, rank() == root ? &into : nullptr);
    if (rank() != root) return collective.send(root, own.data(), own.bytes());
    const PackedPlace all(into, false);
    std::vector<TransferPtr> arriving;
    for (int other = 0; other < size(); ++other) {
      std::byte* const at = all.data() + static_cast<std::size_t>(other) * own.bytes();
      if (other != root)
        arriving.push_back(collective.start_receive(other, at, own.bytes()));
      else if (own.bytes() > 0)
        std::memmove(at, own.data(), own.bytes());
    }
    collective.wait(arriving);
    all.write_back();
  });
}

void CommunicatorCore::scatter(const MessageBuffer& from, const MessageBuffer& into, int root,
                               const Patience& patience) {
  Collective collective(*this, CallKind::scatter, patience);
  std::string fault = first_of(root_fault(root, size()), overlap_fault(into));
  if (rank() == root) fault = first_of(fault, part_fault(from, into, size()));
  collective.run({CallKind::scatter, root, -1, into.layout.elements(), fault}, [&] {
    const PackedPlace own(into, false);
    if (rank() != root) {
      collective.receive(root, own.data(), own.bytes());
    } else {
      const PackedPlace all(from, true, &into);
      std::vector<TransferPtr> leaving;
      for (int other = 0; other < size(); ++other) {
        const std::byte* const at = all.data() + static_cast<std::size_t>(other) * own.bytes();
        if (other != root)
          leaving.push_back(collective.start_send(other, at, own.bytes()));
        else if (own.bytes() > 0)
          std::memmove(own.data(), at, own.bytes());
      }
      collective.wait(leaving);
    }
    own.write_back();
  });
}

namespace {

// Sends a part to each other rank and receives one from each; beginning with the nearest, so that
// not all send to the same rank first.
void exchange_all(Collective& collective, const std::byte* from, std::size_t from_step,
                  std::byte* into, std::size_t bytes) {
  std::vector<TransferPtr> all;
  for (int distance = 1; distance < collective.size(); ++distance) {
    const int source = (collective.rank() + collective.size() - distance) % collective.size();
    all.push_back(
        collective.start_receive(source, into + static_cast<std::size_t>(source) * bytes, bytes));
  }
  for (int distance = 1; distance < collective.size(); ++distance) {
    const int target = (collective.rank() + distance) % collective.size();
    all.push_back(
        collective.start_send(target, from + static_cast<std::size_t>(target) * from_step, bytes));
  }
  const auto own = static_cast<std::size_t>(collective.rank());
  if (bytes > 0) std::memmove(into + own * bytes, from + own * from_step, bytes);
  collective.wait(all);
}

}  // namespace

void CommunicatorCore::all_gather(const MessageBuffer& from, const MessageBuffer& into,
                                  const Patience& patience) {
  Collective collective(*this, CallKind::allgather, patience);
  const std::string fault = first_of(part_fault(into, from, size()), overlap_fault(into));
  collective.run({CallKind::allgather, -1, -1, from.layout.elements(), fault}, [&] {
    const PackedPlace own(from, true, &into), all(into, false);
    exchange_all(collective, own.data(), 0, all.data(), own.bytes());
    all.write_back();
  });
}

void CommunicatorCore::all_to_all(const MessageBuffer& from, const MessageBuffer& into,
                                  const Patience& patience) {
  Collective collective(*this, CallKind::alltoall, patience);
  std::string fault = overlap_fault(into);
  const auto ranks = static_cast<std::uint64_t>(size());
  if (!(from.layout.elements() == into.layout.elements()))
    fault = fmt::format("the elements to be received are {}", into.layout.elements().text());
  else if (from.layout.elements().count() % ranks != 0)
    fault = fmt::format("expected a multiple of {} elements", ranks);
  collective.run({CallKind::alltoall, -1, -1, from.layout.elements(), fault}, [&] {
    const PackedPlace out(from, true, &into), in(into, false);
    const std::size_t part = out.bytes() / ranks;
    exchange_all(collective, out.data(), part, in.data(), part);
    in.write_back();
  });
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
  collective.run({CallKind::split}, [&] {
    exchange_all(collective, reinterpret_cast<const std::byte*>(&own), 0,
                 reinterpret_cast<std::byte*>(wishes.data()), sizeof(Wish));
  });
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
