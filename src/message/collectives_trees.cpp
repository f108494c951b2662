// SPDX-License-Identifier: BSD-3-Clause
// src/message/collectives_trees.cpp: collectives of a communicator that run along trees.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

#include "base/random.h"
#include "message/collective.h"
#include "message/collective_faults.h"
#include "message/nccl/collectives.h"
#include "message/packed_place.h"

namespace quadriga::message {
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

std::int64_t element_bytes(const ElementSignature& elements) {
  return elements.count() == 0 ? 1 : static_cast<std::int64_t>(size_of(elements.type()));
}

// All ranks must follow the same plan.
void add_options(CollectiveTerms& terms, const TreeOptions& options) {
  if (options == TreeOptions{}) return;
  std::uint64_t value = mix(static_cast<std::uint64_t>(options.segment_bytes));
  std::string shapes;
  for (const TreeShape each : options.shapes) {
    value = mix(value ^ static_cast<std::uint64_t>(each));
    shapes += fmt::format("{} ", name(each));
  }
  value = mix(value ^ static_cast<std::uint64_t>(options.leaders));
  value = mix(value ^ static_cast<std::uint64_t>(options.rotates ? 1 + *options.rotates : 0));
  value = mix(value ^ static_cast<std::uint64_t>(options.reproducible));
  terms.detail = mix(terms.detail ^ value);
  terms.detail_text +=
      fmt::format("{}{}segment {}{}", terms.detail_text.empty() ? "" : ", ", shapes,
                  options.segment_bytes, options.reproducible ? ", reproducible" : "");
}

void add_counts(CollectiveTerms& terms, std::span<const std::int64_t> counts) {
  std::string text;
  for (const std::int64_t each : counts) {
    terms.detail = mix(terms.detail ^ mix(static_cast<std::uint64_t>(each)));
    text += fmt::format("{}{}", text.empty() ? "counts " : ", ", each);
  }
  terms.detail_text = std::move(text);
}

// Input and output that are one and the same may stay so.
bool is_same(const MessageBuffer& a, const MessageBuffer& b) {
  return a.data == b.data && a.layout == b.layout;
}

// Reductions run where the result is wanted, if that is a device.
Home home_of(const MessageBuffer& from, const MessageBuffer& into) {
  return message::home_of(into.on_device() ? into : from);
}

// Few bytes of the host, packed, travel with the agreement unless something says how they must.
// `told`: how many each rank tells, or the root does: whoever hears them has no room for more.
class FewBytes {
 public:
  FewBytes(CollectiveTerms& terms, const MessageBuffer& from, const MessageBuffer& into,
           const TreeOptions& options, std::size_t told) {
    if (!terms.fault.empty() || options != TreeOptions{} || from.on_device() || into.on_device() ||
        told > Collective::most_told)
      return;
    const std::span packed = std::span(packed_).first(from.bytes());
    copy_on_host(from, bytes_place(packed.data(), packed.size()));
    terms.told = packed;
  }
  FewBytes(const FewBytes&) = delete;
  FewBytes& operator=(const FewBytes&) = delete;

 private:
  std::array<std::byte, Collective::most_told> packed_;
};

// What all ranks told, combined in their order.
void combine_told(const Collective& collective, const MessageBuffer& into,
                  ReduceOperation operation) {
  const ElementSignature& elements = into.layout.elements();
  if (elements.count() == 0) return;
  std::array<std::byte, Collective::most_told> all;
  std::memcpy(all.data(), collective.told(0), into.bytes());
  const Combine combine = combine_of(operation, elements.type());
  for (int rank = 1; rank < collective.size(); ++rank)
    combine(all.data(), collective.told(rank), elements.count());
  copy_on_host(bytes_place(all.data(), into.bytes()), into);
}

void gather_told(const Collective& collective, std::size_t bytes, const MessageBuffer& into) {
  std::array<std::byte, (Collective::told_at_once + 1) * Collective::most_told> all;
  for (int rank = 0; rank < collective.size(); ++rank)
    std::memcpy(all.data() + static_cast<std::size_t>(rank) * bytes, collective.told(rank), bytes);
  copy_on_host(bytes_place(all.data(), into.bytes()), into);
}

// Ours reads and writes elements wherever they lie; NCCL's kernels need them aligned.
bool is_aligned(const MessageBuffer& place) {
  const auto address = reinterpret_cast<std::uintptr_t>(place.flat());
  return address % size_of(place.layout.elements().type()) == 0;
}

// What NCCL may reduce.
NcclUse::Wish wish_of(TreeCollective kind, int root, const MessageBuffer& from,
                      const MessageBuffer& into, ReduceOperation operation, const Home& home) {
  const bool is_possible = is_aligned(from) && (into.bytes() == 0 || is_aligned(into));
  return {kind,
          root,
          from.layout.elements().type(),
          operation,
          static_cast<std::int64_t>(from.bytes()),
          is_possible ? home : Home{}};
}

MessageBuffer whole_of(const PackedPlace& place) {
  return place.at(0, static_cast<std::int64_t>(place.bytes()));
}

RankOffer offer_of(const Home& home) {
  if (!home.port) return {};
  return {home.port->peer_rate(home.device), home.port->message_cost()};
}

}  // namespace

void CommunicatorCore::force(const TreeOptions& options, CollectiveBy by) {
  if (size() <= 0) return;
  const CollectiveShape nothing{TreeCollective::broadcast, 0, {0}, 1};
  static_cast<void>(plan_collective(Cluster::host(size(), 1, 0), nothing, options));
  forced_ = options;
  by_ = by;
}

void CommunicatorCore::broadcast(const MessageBuffer& place, int root, const Patience& patience) {
  Collective collective(*this, CallKind::bcast, patience);
  const bool receives = rank() != root;
  CollectiveTerms terms{
      CallKind::bcast, root, -1, place.layout.elements(),
      first_of(root_fault(root, size()), receives ? overlap_fault(place) : std::string())};
  add_options(terms, forced_);
  terms.offer = offer_of(message::home_of(place));
  const FewBytes few(terms, receives ? MessageBuffer{} : place, place, forced_, place.bytes());
  NcclUse nccl(*this, terms, forced_,
               {TreeCollective::broadcast,
                root,
                {},
                {},
                static_cast<std::int64_t>(place.bytes()),
                message::home_of(place)});
  collective.run(terms, [&] {
    if (collective.has_told()) {
      if (receives) copy_on_host(bytes_place(collective.told(root), place.bytes()), place);
      return collective.note_told();
    }
    const auto whole = static_cast<std::int64_t>(place.bytes());
    if (nccl.is_chosen(collective)) {
      const PackedPlace packed(collective, place, !receives);
      nccl.carry_out(collective, packed.at(0, whole), packed.at(0, whole));
      return receives ? packed.write_back() : void();
    }
    const auto steps = collective.planned({TreeCollective::broadcast, root, {whole}, 1}, forced_);
    const bool in_one = std::ranges::all_of(
        steps->steps, [&](const RankStep& each) { return each.bytes == whole; });
    // In one piece it travels as it lies.
    if (in_one)
      return collective.take(*steps, [&](const StepPlace&, std::int64_t) { return place; });
    const PackedPlace packed(collective, place, !receives);
    collective.take(*steps, places_of(packed, packed));
    if (receives) packed.write_back();
  });
}

void CommunicatorCore::reduce(const MessageBuffer& from, const MessageBuffer& into,
                              ReduceOperation operation, int root, const Patience& patience,
                              bool reproducible) {
  Collective collective(*this, CallKind::reduce, patience);
  const bool is_root = rank() == root;
  const ElementSignature elements = from.layout.elements();
  TreeOptions options = forced_;
  options.reproducible = options.reproducible || reproducible;
  CollectiveTerms terms{CallKind::reduce, root, static_cast<int>(operation), elements,
                        first_of(root_fault(root, size()),
                                 reduction_fault(from, is_root ? &into : nullptr, operation))};
  add_options(terms, options);
  const MessageBuffer wanted = is_root ? into : MessageBuffer{};
  const Home home = home_of(from, wanted);
  terms.offer = offer_of(home);
  const FewBytes few(terms, from, wanted, options, from.bytes());
  NcclUse nccl(*this, terms, options,
               wish_of(TreeCollective::reduce, root, from, wanted, operation, home));
  collective.run(terms, [&] {
    if (collective.has_told()) {
      if (is_root) combine_told(collective, into, operation);
      return collective.note_told();
    }
    const bool by_nccl = nccl.is_chosen(collective);
    const bool is_apart = is_root && !is_same(from, into);
    const PackedPlace own(collective, from, true, is_apart ? &into : nullptr, home);
    const PackedPlace result(collective, wanted, false, nullptr, home);
    const CollectiveShape shape{TreeCollective::reduce,
                                root,
                                {static_cast<std::int64_t>(own.bytes())},
                                element_bytes(elements)};
    if (by_nccl)
      nccl.carry_out(collective, whole_of(own), whole_of(result));
    else
      collective.take(*collective.planned(shape, options), places_of(own, result),
                      {home, operation, elements});
    if (is_root) result.write_back();
  });
}

void CommunicatorCore::all_reduce(const MessageBuffer& from, const MessageBuffer& into,
                                  ReduceOperation operation, const Patience& patience,
                                  bool reproducible) {
  Collective collective(*this, CallKind::allreduce, patience);
  const ElementSignature elements = from.layout.elements();
  TreeOptions options = forced_;
  options.reproducible = options.reproducible || reproducible;
  CollectiveTerms terms{CallKind::allreduce, -1, static_cast<int>(operation), elements,
                        reduction_fault(from, &into, operation)};
  add_options(terms, options);
  const Home home = home_of(from, into);
  terms.offer = offer_of(home);
  const FewBytes few(terms, from, into, options, from.bytes());
  NcclUse nccl(*this, terms, options,
               wish_of(TreeCollective::all_reduce, 0, from, into, operation, home));
  collective.run(terms, [&] {
    if (collective.has_told()) {
      combine_told(collective, into, operation);
      return collective.note_told();
    }
    const bool by_nccl = nccl.is_chosen(collective);
    const bool is_apart = !is_same(from, into);
    const PackedPlace own(collective, from, true, is_apart ? &into : nullptr, home);
    const PackedPlace result(collective, into, false, nullptr, home);
    const CollectiveShape shape{TreeCollective::all_reduce,
                                0,
                                {static_cast<std::int64_t>(own.bytes())},
                                element_bytes(elements)};
    if (by_nccl)
      nccl.carry_out(collective, whole_of(own), whole_of(result));
    else
      collective.take(*collective.planned(shape, options), places_of(own, result),
                      {home, operation, elements});
    result.write_back();
  });
}

namespace {

std::string counts_fault(const MessageBuffer& from, const MessageBuffer& into, int rank, int ranks,
                         std::span<const std::int64_t> counts) {
  if (counts.size() != static_cast<std::size_t>(ranks))
    return fmt::format("{} counts; expected {}", counts.size(), ranks);
  if (std::ranges::any_of(counts, [](std::int64_t each) { return each < 0; }))
    return "a count is negative";
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (total != from.layout.count())
    return fmt::format("counts sum up to {}; expected {}", total, from.layout.count());
  if (counts[static_cast<std::size_t>(rank)] != into.layout.count())
    return fmt::format("the result's elements are {}", into.layout.elements().text());
  if (into.layout.count() > 0 && (!into.layout.elements().uniform() ||
                                  into.layout.elements().type() != from.layout.elements().type()))
    return fmt::format("the result's elements are {}", into.layout.elements().text());
  return overlap_fault(into);
}

}  // namespace

void CommunicatorCore::reduce_scatter(const MessageBuffer& from, const MessageBuffer& into,
                                      std::span<const std::int64_t> counts,
                                      ReduceOperation operation, const Patience& patience,
                                      bool reproducible) {
  Collective collective(*this, CallKind::reduce_scatter, patience);
  const ElementSignature elements = from.layout.elements();
  TreeOptions options = forced_;
  options.reproducible = options.reproducible || reproducible;
  CollectiveTerms terms{CallKind::reduce_scatter, -1, static_cast<int>(operation), elements,
                        first_of(reduction_fault(from, nullptr, operation),
                                 counts_fault(from, into, rank(), size(), counts))};
  add_counts(terms, counts);
  add_options(terms, options);
  const Home home = home_of(from, into);
  terms.offer = offer_of(home);
  const bool are_alike = std::ranges::all_of(counts, [&](auto each) { return each == counts[0]; });
  NcclUse nccl(
      *this, terms, options,
      wish_of(TreeCollective::reduce_scatter, 0, from, into, operation, are_alike ? home : Home{}));
  collective.run(terms, [&] {
    const bool by_nccl = nccl.is_chosen(collective);
    const PackedPlace own(collective, from, true, &into, home);
    const PackedPlace result(collective, into, false, nullptr, home);
    CollectiveShape shape{TreeCollective::reduce_scatter, 0, {}, element_bytes(elements)};
    for (const std::int64_t each : counts) shape.bytes.push_back(each * shape.element_bytes);
    if (by_nccl)
      nccl.carry_out(collective, whole_of(own), whole_of(result));
    else
      collective.take(*collective.planned(shape, options), places_of(own, result),
                      {home, operation, elements});
    result.write_back();
  });
}

void CommunicatorCore::all_gather(const MessageBuffer& from, const MessageBuffer& into,
                                  const Patience& patience) {
  Collective collective(*this, CallKind::allgather, patience);
  CollectiveTerms terms{CallKind::allgather, -1, -1, from.layout.elements(),
                        first_of(part_fault(into, from, size()), overlap_fault(into))};
  add_options(terms, forced_);
  terms.offer = offer_of(home_of(from, into));
  const FewBytes few(terms, from, into, forced_, from.bytes());
  const Home home = message::home_of(into);
  NcclUse nccl(*this, terms, forced_,
               {TreeCollective::all_gather,
                0,
                {},
                {},
                static_cast<std::int64_t>(from.bytes()) * size(),
                home == message::home_of(from) ? home : Home{}});
  collective.run(terms, [&] {
    if (collective.has_told()) {
      gather_told(collective, from.bytes(), into);
      return collective.note_told();
    }
    const bool by_nccl = nccl.is_chosen(collective);
    const PackedPlace own(collective, from, true, &into), all(collective, into, false);
    if (by_nccl) {
      nccl.carry_out(collective, whole_of(own), whole_of(all));
      return all.write_back();
    }
    CollectiveShape shape{TreeCollective::all_gather, 0, {}, 1};
    shape.bytes.assign(static_cast<std::size_t>(size()), static_cast<std::int64_t>(own.bytes()));
    collective.take(*collective.planned(shape, forced_), places_of(own, all));
    all.write_back();
  });
}

void CommunicatorCore::all_gather_parts(const MessageBuffer& from,
                                        std::span<const MessageBuffer> into,
                                        const Patience& patience) {
  Collective collective(*this, CallKind::allgatherv, patience);
  CollectiveTerms terms{CallKind::allgatherv};
  std::vector<std::int64_t> counts;
  CollectiveShape shape{TreeCollective::all_gather, 0, {}, 1};
  for (const MessageBuffer& each : into) {
    terms.elements = terms.elements.followed_by(each.layout.elements());
    terms.fault = first_of(terms.fault, overlap_fault(each));
    counts.push_back(each.layout.count());
    shape.bytes.push_back(static_cast<std::int64_t>(each.bytes()));
  }
  add_counts(terms, counts);
  if (into.size() != static_cast<std::size_t>(size()))
    terms.fault = fmt::format("{} parts; expected {}", into.size(), size());
  else if (!(into[static_cast<std::size_t>(rank())].layout.elements() == from.layout.elements()))
    terms.fault = fmt::format("this rank gives {}", from.layout.elements().text());
  add_options(terms, forced_);
  terms.offer = offer_of(message::home_of(from));
  collective.run(terms, [&] {
    const PackedPlace own(collective, from, true);
    const auto there = std::ranges::find_if(into, &MessageBuffer::on_device);
    const Room all(message::home_of(there == into.end() ? from : *there),
                   static_cast<std::size_t>(
                       std::accumulate(shape.bytes.begin(), shape.bytes.end(), std::int64_t{0})));
    const auto places = [&](const StepPlace& place, std::int64_t bytes) {
      if (place.buffer == StepBuffer::input) return own.at(place.offset, bytes);
      return all.at(place.offset, static_cast<std::size_t>(bytes));
    };
    collective.take(*collective.planned(shape, forced_), places);
    std::int64_t at = 0;
    for (const MessageBuffer& each : into) {
      if (each.bytes() > 0) collective.copy(all.at(at, each.bytes()), each);
      at += static_cast<std::int64_t>(each.bytes());
    }
  });
}

}  // namespace quadriga::message
