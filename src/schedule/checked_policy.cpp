// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/checked_policy.cpp: asks a policy and makes sense of what it answers.
#include "schedule/checked_policy.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace quadriga {
namespace {

constexpr std::array function_names{"place()",    "victim()",         "choose()",    "next()",
                                    "prefetch()", "eviction_score()", "submitted()", "ended()",
                                    "rank()",     "waiting()",        "placed()",    "pull()"};

/// In the order of the scores, which are no NaN.
std::uint64_t in_order(double score) noexcept {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(score);
  return bits & sign ? ~bits : bits | sign;
}

}  // namespace

/// Leaves first what the policy gave the greatest score, clean before dirty among equals.
class CheckedPolicy::ScoreRule final : public EvictionRule {
 public:
  explicit ScoreRule(CheckedPolicy& policy) : policy_(policy) {}

  VictimRank rank(const Candidate& candidate) const noexcept override {
    if (candidate.tile >= asked_.size())
      asked_.resize(std::max<std::size_t>(candidate.tile + std::size_t{1}, 2 * asked_.size()));
    Asked& asked = asked_[candidate.tile];
    const EvictionCandidate seen{candidate.tile, candidate.bytes, candidate.next_use,
                                 candidate.last_use, candidate.dirty};
    if (!asked.known || asked.next_use != seen.next_use || asked.last_use != seen.last_use ||
        asked.dirty != seen.dirty)
      asked = {true, seen.dirty, seen.next_use, seen.last_use, in_order(policy_.score(seen))};
    return {.distance = asked.score,
            .age = ~candidate.last_use,
            .ease = static_cast<std::uint8_t>(candidate.dirty ? 0 : 1)};
  }

 private:
  struct Asked {
    bool known = false;
    bool dirty = false;
    std::uint64_t next_use = 0;
    std::uint64_t last_use = 0;
    std::uint64_t score = 0;
  };
  CheckedPolicy& policy_;
  mutable std::vector<Asked> asked_;  ///< By tile.
};

CheckedPolicy::CheckedPolicy(std::string name, std::unique_ptr<Policy> policy,
                             std::optional<Eviction> eviction)
    : name_(std::move(name)), policy_(std::move(policy)) {
  if (!policy_)
    fail(Errc::invalid_argument, fmt::format("the maker of policy '{}' made none", name_));
  traits_ = policy_->traits();
  if (eviction) traits_.eviction = *eviction;
  if (traits_.eviction == Eviction::read_first) rule_ = std::make_unique<ReadFirst>();
  if (traits_.eviction == Eviction::least_recent) rule_ = std::make_unique<Lru>();
  if (traits_.eviction == Eviction::by_score) rule_ = std::make_unique<ScoreRule>(*this);
}

void CheckedPolicy::report(Question question, const std::string& what) {
  if (std::exchange(reported_[question], true) || !report_) return;
  report_(fmt::format("policy '{}': {} {}; it counts as no answer", name_, function_names[question],
                      what));
}

/// What is thrown is reported.
template <class Tell>
void CheckedPolicy::told(Question question, Tell&& tell) {
  checked(question, 1, [&]() -> std::size_t {
    tell();
    return 0;
  });
}

template <class Ask>
std::size_t CheckedPolicy::checked(Question question, std::size_t count, Ask&& ask) {
  if (count == 0) return 0;
  try {
    const std::size_t answer = ask();
    if (answer < count) return answer;
    if (answer != count && answer != Policy::none)
      report(question, fmt::format("answered {}; expected less than {}", answer, count));
  } catch (const std::exception& error) {
    report(question, fmt::format("threw: {}", error.what()));
  } catch (...) {
    report(question, "threw what is no std::exception");
  }
  return count;
}

void CheckedPolicy::submitted(const TaskNews& news) {
  told(submitting, [&] { policy_->submitted(news); });
}

void CheckedPolicy::ended(std::uint64_t id) {
  told(ending, [&] { policy_->ended(id); });
}

void CheckedPolicy::waiting(const TaskNews& news) {
  told(telling_of_waiting, [&] { policy_->waiting(news); });
}

void CheckedPolicy::placed(std::uint64_t id, DeviceId device) {
  told(telling_where, [&] { policy_->placed(id, device); });
}

void CheckedPolicy::pull(const PullQuestion& question, std::vector<std::uint64_t>& tasks) {
  tasks.clear();
  told(pulling, [&] { policy_->pull(question, tasks); });
}

void CheckedPolicy::pulled_wrongly(std::uint64_t id) {
  report(pulling, fmt::format("chose {}, which is no waiting task that the device can run", id));
}

double CheckedPolicy::rank(const TaskView& task) {
  double answer = 0;
  told(ranking, [&] { answer = policy_->rank(task); });
  if (std::isnan(answer)) report(ranking, "answered what is no number");
  return answer > 0 ? answer : 0;
}

std::size_t CheckedPolicy::place(const PlaceQuestion& question) {
  const std::span candidates = question.candidates;
  const std::size_t answer =
      checked(placing, candidates.size(), [&] { return policy_->place(question); });
  if (answer < candidates.size()) return answer;
  // By turns among equals: where no times are known all have the same.
  std::size_t best = turn_++ % candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].queued_seconds < candidates[best].queued_seconds) best = i;
  return best;
}

std::size_t CheckedPolicy::victim(const StealQuestion& question) {
  return checked(robbing, question.queued.size(), [&] { return policy_->victim(question); });
}

std::size_t CheckedPolicy::choose(std::span<const StealCandidate> candidates) {
  return checked(choosing, candidates.size(), [&] { return policy_->choose(candidates); });
}

std::size_t CheckedPolicy::next(std::span<const ReadyCandidate> candidates) {
  const std::size_t answer =
      checked(ordering, candidates.size(), [&] { return policy_->next(candidates); });
  return answer < candidates.size() ? answer : 0;
}

std::size_t CheckedPolicy::prefetch(std::span<const PrefetchCandidate> candidates) {
  return checked(prefetching, candidates.size(), [&] { return policy_->prefetch(candidates); });
}

double CheckedPolicy::score(const EvictionCandidate& candidate) {
  double answer = 0;
  checked(scoring, 1, [&]() -> std::size_t {
    answer = policy_->eviction_score(candidate);
    return 0;
  });
  if (!std::isnan(answer)) return answer;
  report(scoring, "answered what is no number");
  return 0;
}

}  // namespace quadriga
