// SPDX-License-Identifier: BSD-3-Clause
// src/message/collectives_direct.cpp: collectives in which pairs of ranks exchange parts directly.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

#include "message/collective.h"
#include "message/collective_faults.h"
#include "message/packed_place.h"
#include "message/schedules/steps.h"

namespace quadriga::message {

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

std::string root_fault(int root, int size) {
  return root < 0 || root >= size ? fmt::format("expected a root from 0 to {}", size - 1) : "";
}

std::string first_of(std::string a, std::string b) { return a.empty() ? b : a; }

namespace {

// A part of so many bytes for each rank, in order; or for one of them only.
std::vector<Parcel> parcels(int ranks, std::size_t bytes) {
  std::vector<Parcel> all;
  const auto size = static_cast<std::int64_t>(bytes);
  for (int rank = 0; rank < ranks; ++rank) all.push_back({rank, size, rank * size});
  return all;
}
std::vector<Parcel> parcel_for(int rank, std::size_t bytes) {
  return {{rank, static_cast<std::int64_t>(bytes), 0}};
}

}  // namespace

void CommunicatorCore::gather(const MessageBuffer& from, const MessageBuffer& into, int root,
                              const Patience& patience) {
  Collective collective(*this, CallKind::gather, patience);
  const bool is_root = rank() == root;
  std::string fault = root_fault(root, size());
  if (is_root)
    fault = first_of(fault, first_of(part_fault(into, from, size()), overlap_fault(into)));
  collective.run({CallKind::gather, root, -1, from.layout.elements(), fault}, [&] {
    const PackedPlace own(collective, from, true, is_root ? &into : nullptr);
    const PackedPlace all(collective, is_root ? into : MessageBuffer{}, false);
    const std::vector<Parcel> arriving =
        is_root ? parcels(size(), own.bytes()) : std::vector<Parcel>{};
    collective.take(direct_steps(rank(), size(), parcel_for(root, own.bytes()), arriving),
                    places_of(own, all));
    all.write_back();
  });
}

void CommunicatorCore::scatter(const MessageBuffer& from, const MessageBuffer& into, int root,
                               const Patience& patience) {
  Collective collective(*this, CallKind::scatter, patience);
  const bool is_root = rank() == root;
  std::string fault = first_of(root_fault(root, size()), overlap_fault(into));
  if (is_root) fault = first_of(fault, part_fault(from, into, size()));
  collective.run({CallKind::scatter, root, -1, into.layout.elements(), fault}, [&] {
    const PackedPlace all(collective, is_root ? from : MessageBuffer{}, true, &into);
    const PackedPlace own(collective, into, false);
    const std::vector<Parcel> leaving =
        is_root ? parcels(size(), own.bytes()) : std::vector<Parcel>{};
    collective.take(direct_steps(rank(), size(), leaving, parcel_for(root, own.bytes())),
                    places_of(all, own));
    own.write_back();
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
    const PackedPlace out(collective, from, true, &into), in(collective, into, false);
    const std::vector<Parcel> parts = parcels(size(), out.bytes() / ranks);
    collective.take(direct_steps(rank(), size(), parts, parts), places_of(out, in));
    in.write_back();
  });
}

namespace {

// What one rank has for another, or expects of it: known to both before anything moves.
struct PairTerms {
  std::uint64_t parts = 0, count = 0, hash = 0;
  bool operator==(const PairTerms&) const = default;
};

std::string parts_fault(std::span<const RankPart> parts, int size, bool receives) {
  for (const RankPart& each : parts) {
    if (each.peer < 0 || each.peer >= size)
      return fmt::format("a part is {} rank {}; expected 0 to {}", receives ? "from" : "for",
                         each.peer, size - 1);
    if (receives && !overlap_fault(each.place).empty()) return overlap_fault(each.place);
  }
  return {};
}

std::vector<PairTerms> terms_of(std::span<const RankPart> parts, int size) {
  std::vector<ElementSignature> all(static_cast<std::size_t>(size));
  std::vector<PairTerms> terms(all.size());
  for (const RankPart& each : parts) {
    const auto at = static_cast<std::size_t>(each.peer);
    const ElementSignature& elements = each.place.layout.elements();
    // How elements are divided among parts counts, too.
    ++terms[at].parts;
    terms[at].hash = terms[at].hash * 3 + elements.count();
    all[at] = all[at].followed_by(elements);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    terms[i].count = all[i].count();
    terms[i].hash ^= all[i].hash();
  }
  return terms;
}

std::string difference(const std::vector<PairTerms>& given,
                       const std::vector<PairTerms>& expected) {
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!(given[i] == expected[i]))
      return fmt::format("rank {} gives {} elements in {} parts, expected are {} in {}{}", i,
                         given[i].count, given[i].parts, expected[i].count, expected[i].parts,
                         given[i].count == expected[i].count ? " (of other types or sizes)" : "");
  return {};
}

// Where parts are sent from: packed if they share memory with one that is received.
std::vector<PackedPlace> packed_sends(Collective& collective, std::span<const RankPart> sends,
                                      std::span<const RankPart> receives) {
  std::vector<PackedPlace> all;
  all.reserve(sends.size());
  for (const RankPart& each : sends) {
    const auto shared = std::ranges::find_if(receives, [&](const RankPart& other) {
      return other.place.bytes() > 0 && each.place.bytes() > 0 && overlap(each.place, other.place);
    });
    all.push_back(PackedPlace::part(collective, each.place, true,
                                    shared == receives.end() ? nullptr : &shared->place));
  }
  return all;
}

std::vector<Parcel> numbered(std::span<const RankPart> parts) {
  std::vector<Parcel> all;
  for (const RankPart& each : parts)
    all.push_back({each.peer, static_cast<std::int64_t>(each.place.bytes()),
                   static_cast<std::int64_t>(all.size())});
  return all;
}

}  // namespace

void CommunicatorCore::exchange(CallKind kind, int root, std::span<const RankPart> sends,
                                std::span<const RankPart> receives, const Patience& patience) {
  Collective collective(*this, kind, patience);
  CollectiveTerms terms{
      kind,
      root,
      -1,
      {},
      first_of(parts_fault(sends, size(), false), parts_fault(receives, size(), true))};
  if (root >= size() || (root < 0 && root != -1)) terms.fault = root_fault(root, size());
  collective.run(terms, [&] {
    const std::vector<PairTerms> given = terms_of(sends, size());
    std::vector<PairTerms> theirs(given.size());
    collective.all_to_all(given.data(), sizeof(PairTerms), theirs.data(), sizeof(PairTerms));
    terms.fault = difference(theirs, terms_of(receives, size()));
    collective.agree_again(terms);
    const std::vector<PackedPlace> leaving = packed_sends(collective, sends, receives);
    std::vector<PackedPlace> arriving;
    arriving.reserve(receives.size());
    for (const RankPart& each : receives)
      arriving.push_back(PackedPlace::part(collective, each.place, false));
    collective.take(direct_steps(rank(), size(), numbered(sends), numbered(receives)),
                    [&](const StepPlace& place, std::int64_t) {
                      const auto& parts = place.buffer == StepBuffer::input ? leaving : arriving;
                      return parts[static_cast<std::size_t>(place.offset)].whole();
                    });
    for (const PackedPlace& each : arriving) each.write_back();
  });
}

}  // namespace quadriga::message
