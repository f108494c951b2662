// SPDX-License-Identifier: BSD-3-Clause
// src/graph/policy.cpp: the policies steal and affinity.
#include "graph/policy.h"

#include <quadriga/error.h>

#include <algorithm>
#include <limits>
#include <string>

namespace quadriga {
namespace {

std::size_t index_of(std::span<const PlaceCandidate> candidates, DeviceId device) {
  const auto found = std::ranges::find(candidates, device, &PlaceCandidate::device);
  return static_cast<std::size_t>(found - candidates.begin());
}

/// Work stealing: a task goes where it became ready, an idle worker asks a random victim for its
/// oldest.
///
/// Source:  Lima, Gautier, Maillard, Danjean, SBAC-PAD 2012, section III.A.
class Steal final : public Policy {
 public:
  explicit Steal(std::uint64_t seed) : random_(seed) {}
  std::string_view name() const noexcept override { return "steal"; }
  bool plans_ahead() const noexcept override { return false; }

  std::size_t place(const PlaceQuestion& question) override {
    const std::size_t at = index_of(question.candidates, question.activator);
    return at < question.candidates.size() ? at : random_.below(question.candidates.size());
  }

  std::size_t victim(const StealQuestion& question) override {
    std::size_t others = 0;
    for (double queued : question.queued) others += queued > 0;
    if (others == 0) return question.queued.size();
    std::size_t pick = random_.below(others);
    for (std::size_t i = 0; i < question.queued.size(); ++i)
      if (question.queued[i] > 0 && pick-- == 0) return i;
    return question.queued.size();
  }

  std::size_t choose(std::span<const StealCandidate>) override { return 0; }

 private:
  Random random_;
};

/// Owners first, else where the task would end earliest with its copies; idle devices take what has
/// most bytes here, and only what they would end sooner than its victim.
class Affinity final : public Policy {
 public:
  std::string_view name() const noexcept override { return "affinity"; }
  bool plans_ahead() const noexcept override { return true; }

  std::size_t place(const PlaceQuestion& question) override {
    const std::size_t owner = index_of(question.candidates, question.owner);
    if (owner < question.candidates.size()) return owner;
    std::size_t best = 0;
    double best_end = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < question.candidates.size(); ++i) {
      const PlaceCandidate& c = question.candidates[i];
      const double end =
          std::max(c.queued_seconds, c.fetch_seconds) + c.fetch_seconds * 0.5 + c.kernel_seconds;
      if (end < best_end) {
        best_end = end;
        best = i;
      }
    }
    return best;
  }

  std::size_t victim(const StealQuestion& question) override {
    const auto most = std::ranges::max_element(question.queued);
    if (most == question.queued.end() || *most <= 0) return question.queued.size();
    return static_cast<std::size_t>(most - question.queued.begin());
  }

  std::size_t choose(std::span<const StealCandidate> candidates) override {
    std::size_t best = candidates.size();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const StealCandidate& c = candidates[i];
      if (c.gain_seconds <= 0) continue;
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
};

}  // namespace

std::unique_ptr<Policy> make_policy(std::string_view name, std::uint64_t seed) {
  if (name.empty() || name == "affinity") return std::make_unique<Affinity>();
  if (name == "steal") return std::make_unique<Steal>(seed);
  fail(Errc::invalid_argument,
       "unknown policy '" + std::string(name) + "'; there are affinity and steal");
}

}  // namespace quadriga
