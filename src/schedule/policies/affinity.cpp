// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policies/affinity.cpp: the policy affinity: owners, else the earliest end; idle
// devices take what has most bytes with them.
#include <algorithm>
#include <limits>

#include "schedule/policies/built_in.h"

namespace quadriga {
namespace {

/// Most similar tasks went to other kinds of device, and none has ended on this one.
bool is_guess(const Experience& e) {
  return e.learns && e.ended == 0 && e.placed > 2 * e.under_way;
}

/// Whether to run a task of unknown time on this kind of device as a trial. There are few trials,
/// one after the other, each after so many placed tasks that its cost is small; after more of them
/// where no other work would overlap the trial.
bool is_worth_a_try(const Experience& e) {
  constexpr std::int64_t most = 2;
  const std::int64_t enough = e.beside > 0 ? 16 : 64;
  return e.learns && e.ended < most && e.under_way == 0 && e.placed >= enough * (e.ended + 1);
}

/// Owners first; tasks whose owner is pulled_owner wait for devices, as under data-first; others go
/// where they would end earliest with their copies. Idle devices take what has most bytes here, and
/// only what they would end sooner than its victim. What nobody knows is tried on each kind of
/// device, one task at a time.
class Affinity final : public Policy {
 public:
  explicit Affinity(const PolicyContext& context) : pulls_(make_data_first(context)) {}

  PolicyTraits traits() const override {
    return {.plans_ahead = true, .follows_owners = true, .pulls = true};
  }
  void waiting(const TaskNews& news) override { pulls_->waiting(news); }
  void placed(std::uint64_t id, DeviceId device) override { pulls_->placed(id, device); }
  void ended(std::uint64_t id) override { pulls_->ended(id); }
  void pull(const PullQuestion& question, std::vector<std::uint64_t>& tasks) override {
    pulls_->pull(question, tasks);
  }

  std::size_t place(const PlaceQuestion& question) override {
    const std::size_t owner = index_of(question.candidates, question.owner);
    if (owner < question.candidates.size()) return owner;
    std::size_t best = 0;
    int best_rank = 0;
    double best_end = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < question.candidates.size(); ++i) {
      const PlaceCandidate& c = question.candidates[i];
      const double end =
          std::max(c.queued_seconds, c.fetch_seconds) + c.fetch_seconds * 0.5 + c.kernel_seconds;
      const int rank = rank_of(c.experience);
      if (rank > best_rank || (rank == best_rank && end < best_end)) {
        best_rank = rank;
        best_end = end;
        best = i;
      }
    }
    return best;
  }

  std::size_t victim(const StealQuestion& question) override {
    return most_queued(question.queued);
  }

  std::size_t choose(std::span<const StealCandidate> candidates) override {
    std::size_t best = candidates.size();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const StealCandidate& c = candidates[i];
      const bool gains = c.gain_seconds > 0 && !is_guess(c.experience);
      if (!gains && !is_worth_a_try(c.experience)) continue;
      if (best == candidates.size()) {
        best = i;
        continue;
      }
      const StealCandidate& b = candidates[best];
      const double here = c.bytes_here - c.bytes_missing;
      const double there = b.bytes_here - b.bytes_missing;
      if (here > there || (here == there && c.staged_there < b.staged_there)) best = i;
    }
    return best;
  }

 private:
  /// Tries first; last who has one under way and knows nothing yet.
  static int rank_of(const Experience& e) {
    if (is_worth_a_try(e)) return 2;
    return is_guess(e) && e.under_way > 0 ? 0 : 1;
  }

  const std::unique_ptr<Policy> pulls_;
};

}  // namespace

std::size_t index_of(std::span<const PlaceCandidate> candidates, DeviceId device) {
  const auto found = std::ranges::find(candidates, device, &PlaceCandidate::device);
  return static_cast<std::size_t>(found - candidates.begin());
}

std::size_t most_queued(std::span<const double> queued) {
  const auto most = std::ranges::max_element(queued);
  if (most == queued.end() || *most <= 0) return Policy::none;
  return static_cast<std::size_t>(most - queued.begin());
}

std::size_t greatest_gain(std::span<const StealCandidate> candidates) {
  const auto best = std::ranges::max_element(candidates, {}, &StealCandidate::gain_seconds);
  if (best == candidates.end() || best->gain_seconds <= 0) return Policy::none;
  return static_cast<std::size_t>(best - candidates.begin());
}

std::unique_ptr<Policy> make_affinity(const PolicyContext& context) {
  return std::make_unique<Affinity>(context);
}

}  // namespace quadriga
