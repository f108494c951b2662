// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/checked_policy.h: a policy whose answers are what they may be, whatever it says.
//
// Invariants
//   1. Every index is less than the number of candidates, or is their number: none.
//   2. Nothing is thrown. An answer that means nothing counts as none, and is reported once a
//      question.
//   3. A candidate for eviction has one score as long as it doesn't change: a decision compares its
//      candidates in one order, though the policy drew the scores at random.
#pragma once

#include <quadriga/policy.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/eviction.h"

namespace quadriga {

class CheckedPolicy {
 public:
  /// Errors: invalid_argument if there is no policy.
  /// `eviction`: instead of the policy's own.
  CheckedPolicy(std::string name, std::unique_ptr<Policy> policy,
                std::optional<Eviction> eviction = {});

  const PolicyTraits& traits() const noexcept { return traits_; }
  void submitted(const TaskNews& news);
  void ended(std::uint64_t id);
  /// Not negative, and no NaN.
  double rank(const TaskView& task);
  void waiting(const TaskNews& news);
  void placed(std::uint64_t id, DeviceId device);
  /// What is no waiting task that the device can run is left to the caller to find out, who says so
  /// by pulled_wrongly().
  void pull(const PullQuestion& question, std::vector<std::uint64_t>& tasks);
  void pulled_wrongly(std::uint64_t id);
  /// Always one of the candidates.
  std::size_t place(const PlaceQuestion& question);
  std::size_t victim(const StealQuestion& question);
  std::size_t choose(std::span<const StealCandidate> candidates);
  /// Always one of the candidates, of which there are some.
  std::size_t next(std::span<const ReadyCandidate> candidates);
  std::size_t prefetch(std::span<const PrefetchCandidate> candidates);
  /// Null: the memory's own, for Eviction::farthest_use.
  const EvictionRule* eviction() const noexcept { return rule_.get(); }
  /// Who gets what there is to report; asked on the thread that asks the policy.
  void report_to(std::function<void(std::string)> report) { report_ = std::move(report); }

 private:
  enum Question {
    placing,
    robbing,
    choosing,
    ordering,
    prefetching,
    scoring,
    submitting,
    ending,
    ranking,
    telling_of_waiting,
    telling_where,
    pulling
  };
  class ScoreRule;

  template <class Ask>
  std::size_t checked(Question question, std::size_t count, Ask&& ask);
  template <class Tell>
  void told(Question question, Tell&& tell);
  double score(const EvictionCandidate& candidate);
  void report(Question question, const std::string& what);

  std::string name_;
  std::unique_ptr<Policy> policy_;
  PolicyTraits traits_;
  std::unique_ptr<EvictionRule> rule_;
  std::function<void(std::string)> report_;
  std::array<bool, pulling + 1> reported_{};
  std::size_t turn_ = 0;  ///< Counts tasks that the policy placed nowhere.
};

}  // namespace quadriga
