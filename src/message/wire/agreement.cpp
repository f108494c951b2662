// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/agreement.cpp: a question's place, this rank's proposal, and the chosen one.
#include "message/wire/agreement.h"

#include <fmt/format.h>
#include <quadriga/error.h>

namespace quadriga::message {
namespace {

// The place of a key: its own, or the first that nobody has.
std::uint32_t place_of(const SharedSegment& segment, std::uint64_t key) {
  for (std::uint32_t i = 0; i < most_agreements; ++i) {
    const auto place = static_cast<std::uint32_t>((key + i) % most_agreements);
    std::uint64_t found = 0;
    if (segment.agreement(place).key.compare_exchange_strong(found, key) || found == key)
      return place;
  }
  fail(Errc::unavailable,
       fmt::format("shrink: the ranks of a world can agree {} times", most_agreements));
}

}  // namespace

RankSet agree(const SharedSegment& segment, int rank, std::uint64_t key, const RankSet& proposal) {
  const std::uint32_t place = place_of(segment, key);
  ProposalWords& own = segment.proposal(place, rank);
  for (std::size_t i = 0; i < own.words.size(); ++i)
    own.words[i].store(proposal.words()[i], std::memory_order_relaxed);
  std::uint32_t chosen = 0;
  if (segment.agreement(place).chosen.compare_exchange_strong(chosen,
                                                              static_cast<std::uint32_t>(rank) + 1))
    return proposal;
  if (chosen > static_cast<std::uint32_t>(segment.shape().ranks))
    throw PeerLost(
        -1, fmt::format("shrink: rank {} was chosen, of {}", chosen - 1, segment.shape().ranks));
  const ProposalWords& first = segment.proposal(place, static_cast<int>(chosen) - 1);
  RankSet answer;
  for (std::size_t i = 0; i < first.words.size(); ++i)
    answer.words()[i] = first.words[i].load(std::memory_order_relaxed);
  return answer;
}

}  // namespace quadriga::message
