// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/policy/hostile.cpp: policies that answer what they shouldn't, or nothing at all.
#include <cmath>
#include <stdexcept>
#include <vector>

#include "base/random.h"
#include "contract/policy/from_outside.h"

namespace quadriga {
namespace {

constexpr PolicyTraits all_asked{
    .orders = true, .filters_prefetches = true, .eviction = Eviction::by_score};

class Hostile final : public Policy {
 public:
  explicit Hostile(std::uint64_t seed) : random_(seed) {}
  PolicyTraits traits() const override {
    PolicyTraits traits = all_asked;
    traits.plans_ahead = true;
    traits.follows_tasks = true;
    traits.ranks = true;
    return traits;
  }

  void submitted(const TaskNews&) override { answer(1); }
  void ended(std::uint64_t) override { answer(1); }
  double rank(const TaskView&) override {
    const double scores[] = {-1, std::nan(""), HUGE_VAL, 1e300, 1e-300, random_.uniform()};
    return scores[answer(1) % 6];
  }
  std::size_t place(const PlaceQuestion& question) override {
    return answer(question.candidates.size());
  }
  std::size_t victim(const StealQuestion& question) override {
    return answer(question.queued.size());
  }
  std::size_t choose(std::span<const StealCandidate> tasks) override {
    return answer(tasks.size());
  }
  std::size_t next(std::span<const ReadyCandidate> tasks) override { return answer(tasks.size()); }
  std::size_t prefetch(std::span<const PrefetchCandidate>) override { return none; }
  double eviction_score(const EvictionCandidate&) override {
    if (random_.chance(0.1)) throw std::runtime_error("no score");
    return random_.chance(0.1) ? std::nan("") : random_.uniform() - 0.5;
  }

 private:
  std::size_t answer(std::size_t count) {
    if (random_.chance(0.05)) throw std::out_of_range("no answer");
    if (random_.chance(0.05)) throw 5;
    return random_.chance(0.5) ? random_.below(count) : random_();
  }
  Random random_;
};

/// Lets all tasks wait, and often pulls what it shouldn't: nothing, what isn't there, one twice.
class Lazy final : public Policy {
 public:
  explicit Lazy(std::uint64_t seed) : random_(seed) {}
  PolicyTraits traits() const override { return {.follows_tasks = true, .pulls = true}; }
  void waiting(const TaskNews& news) override { told_.push_back(news.task.id); }
  void pull(const PullQuestion&, std::vector<std::uint64_t>& tasks) override {
    if (random_.chance(0.2)) throw std::out_of_range("no answer");
    if (random_.chance(0.5) || told_.empty()) return;
    tasks = {random_(), told_.back(), told_.back(), told_[random_.below(told_.size())]};
    told_.pop_back();
  }
  std::size_t place(const PlaceQuestion&) override { return none; }

 private:
  Random random_;
  std::vector<std::uint64_t> told_;
};

class Silent final : public Policy {
 public:
  PolicyTraits traits() const override { return all_asked; }
  std::size_t place(const PlaceQuestion&) override { return none; }
  std::size_t next(std::span<const ReadyCandidate>) override { return none; }
  std::size_t prefetch(std::span<const PrefetchCandidate>) override { return none; }
};

}  // namespace

void register_hostile() {
  register_policy("hostile", "answers at random and throws", [](const PolicyContext& context) {
    return std::make_unique<Hostile>(context.seed);
  });
  register_policy("lazy", "lets tasks wait and pulls at random", [](const PolicyContext& context) {
    return std::make_unique<Lazy>(context.seed);
  });
  register_policy("silent", "never answers",
                  [](const PolicyContext&) { return std::make_unique<Silent>(); });
}

}  // namespace quadriga
