// SPDX-License-Identifier: BSD-3-Clause
// src/engine/worker_queues.cpp: from whom a worker takes, and how many tasks at once.
#include "engine/worker_queues.h"

#include <algorithm>

namespace quadriga {

WorkerQueues::WorkerQueues(std::size_t places, const MakePolicy& make) : places_(places) {
  for (std::size_t i = 0; i < places; ++i) {
    Place& place = places_[i];
    place.policy = make(i);
    place.queued.resize(places);
  }
}

WorkerQueues::Next WorkerQueues::steal(std::size_t place) {
  Place& self = places_[place];
  double total = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    self.queued[i] = i == place ? 0 : places_[i].queue.size();
    total += self.queued[i];
  }
  if (total == 0) return {};
  const StealQuestion question{static_cast<DeviceId>(place), self.queued};
  std::size_t victim = self.policy->victim(question);
  // Whoever is idle looks somewhere: what lies in the submitter's queue runs nowhere else.
  if (victim == places_.size())
    victim = static_cast<std::size_t>(std::ranges::max_element(self.queued) - self.queued.begin());
  const auto there = static_cast<std::size_t>(self.queued[victim]);
  const std::size_t fair = there / (2 * (places_.size() - 1));
  self.batch_count =
      places_[victim].queue.pop(self.batch, std::clamp<std::size_t>(fair, 1, batch_size));
  self.batch_next = 0;
  if (self.batch_count == 0) return {};
  if (there > self.batch_count) work_.left_over();
  for (std::size_t i = 1; i < std::min(fetched_ahead, self.batch_count); ++i)
    fetch_ahead(self.batch[i]);
  return {next_of_batch(self), victim + 1 != places_.size()};
}

void WorkerQueues::return_batch(std::size_t place) {
  Place& self = places_[place];
  while (self.batch_next < self.batch_count) push(place, *self.batch[self.batch_next++]);
}

std::size_t WorkerQueues::total() const noexcept {
  std::size_t sum = 0;
  for (const Place& place : places_) sum += place.queue.size();
  return sum;
}

bool WorkerQueues::has_tasks() const noexcept {
  return std::ranges::any_of(places_, [](const auto& each) { return each.queue.size() > 0; });
}

}  // namespace quadriga
