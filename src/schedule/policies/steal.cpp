// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/steal.cpp: the policy steal: a task stays where it became ready until an
// idle device takes it.
#include <algorithm>

#include "base/random.h"
#include "schedule/policies/built_in.h"

namespace quadriga {
namespace {

/// Work stealing: a task goes where it became ready, an idle worker asks a random victim for its
/// oldest.
///
/// Source:  Lima, Gautier, Maillard, Danjean, SBAC-PAD 2012, section III.A.
class Steal final : public Policy {
 public:
  explicit Steal(std::uint64_t seed) : random_(seed) {}

  /// Where a task became ready says nothing about who is quick at it.
  PolicyTraits traits() const override { return {.steals_from_host = true}; }

  std::size_t place(const PlaceQuestion& question) override {
    const std::size_t at = index_of(question.candidates, question.activator);
    return at < question.candidates.size() ? at : random_.below(question.candidates.size());
  }

  std::size_t victim(const StealQuestion& question) override {
    std::size_t others = 0;
    for (double queued : question.queued) others += queued > 0;
    if (others == 0) return none;
    std::size_t pick = random_.below(others);
    for (std::size_t i = 0; i < question.queued.size(); ++i)
      if (question.queued[i] > 0 && pick-- == 0) return i;
    return none;
  }

  /// The oldest that ends earlier with the thief: a core is no help where a GPU is about to be.
  std::size_t choose(std::span<const StealCandidate> candidates) override {
    const auto gains = [](const StealCandidate& candidate) { return candidate.gain_seconds > 0; };
    return static_cast<std::size_t>(std::ranges::find_if(candidates, gains) - candidates.begin());
  }

 private:
  Random random_;
};

}  // namespace

std::unique_ptr<Policy> make_steal(const PolicyContext& context) {
  return std::make_unique<Steal>(context.seed);
}

}  // namespace quadriga
