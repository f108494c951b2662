// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/policy/round_robin.cpp: a policy as a user writes it, by the public header alone.
#include <quadriga/policy.h>

#include <algorithm>

#include "contract/policy/from_outside.h"

namespace {

using namespace quadriga;

/// Each task goes to the next device; an idle device takes what gains most, the shortest ready task
/// is first, and small tiles leave before large ones.
class RoundRobin final : public Policy {
 public:
  PolicyTraits traits() const override { return {.orders = true, .eviction = Eviction::by_score}; }

  std::size_t place(const PlaceQuestion& question) override {
    return turn_++ % question.candidates.size();
  }

  std::size_t victim(const StealQuestion& question) override {
    const auto most = std::ranges::max_element(question.queued);
    return static_cast<std::size_t>(most - question.queued.begin());
  }

  std::size_t choose(std::span<const StealCandidate> tasks) override {
    const auto most = std::ranges::max_element(tasks, {}, &StealCandidate::gain_seconds);
    return static_cast<std::size_t>(most - tasks.begin());
  }

  std::size_t next(std::span<const ReadyCandidate> tasks) override {
    const auto least = std::ranges::min_element(tasks, {}, &ReadyCandidate::kernel_seconds);
    return static_cast<std::size_t>(least - tasks.begin());
  }

  double eviction_score(const EvictionCandidate& tile) override {
    return -static_cast<double>(tile.bytes);
  }

 private:
  std::size_t turn_ = 0;
};

}  // namespace

void quadriga::register_round_robin() {
  register_policy("round_robin", "devices in turn, short tasks first",
                  [](const PolicyContext&) { return std::make_unique<RoundRobin>(); });
}
