// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/home_links.h: what the links of a group's devices reach, and copies that share them.
#pragma once

#include "device/fair_share.h"
#include "linalg/device_group.h"

#include <cstddef>
#include <deque>
#include <limits>
#include <vector>

namespace quadriga::linalg {

/// The ways between a group's home, which is the host's memory or a device's, and its devices.
class HomeLinks {
 public:
  HomeLinks(const Machine& machine, const DeviceGroup& group);

  std::size_t size() const noexcept { return size_; }
  /// Indices of routes; -1: none.
  int load(std::size_t place) const noexcept { return loads_[place]; }
  int store(std::size_t place) const noexcept { return stores_[place]; }
  int between(std::size_t from, std::size_t to) const noexcept {
    return between_[from * size_ + to];
  }
  /// Bytes a second of a copy by such runs that has its way to itself; infinite without a way.
  double rate(int route, double run_bytes = std::numeric_limits<double>::infinity()) const noexcept;
  /// Of each device's copies from home by such runs, and to it, while all others do the same;
  /// infinite for the device that is at home.
  std::vector<double> load_rates(double run_bytes) { return together(loads_, run_bytes); }
  std::vector<double> store_rates(double run_bytes) { return together(stores_, run_bytes); }
  FairShare& shares() noexcept { return shares_; }
  /// All that copies' times follow from.
  std::vector<double> key() const;

 private:
  std::vector<double> together(const std::vector<int>& routes, double run_bytes);

  const Machine& machine_;
  FairShare shares_;
  std::size_t size_;
  std::vector<int> loads_;
  std::vector<int> stores_;
  std::vector<int> between_;
};

/// Copies in queues, one of each at a time; those that go on share the links they cross.
class CopyClock {
 public:
  static constexpr std::size_t nobody = SIZE_MAX;

  struct Copy {
    int route = -1;
    double bytes = 0;
    double limit = 0;  ///< Bytes a second.
    std::size_t tile = 0;
    std::size_t to = nobody;    ///< Place of the device that gets it,
    std::size_t from = nobody;  ///< and of the one that must have it before; nobody: it is there.
    std::int64_t version = 0;   ///< The caller's.
    double seconds() const noexcept { return limit > 0 ? bytes / limit : 0; }
  };

  CopyClock(HomeLinks& home_links, std::size_t queues) : home_links_(home_links), queues_(queues) {}

  void push(std::size_t queue, const Copy& copy) {
    queues_[queue].copies.push_back(copy);
    changed_ = true;
  }
  const std::deque<Copy>& copies(std::size_t queue) const noexcept { return queues_[queue].copies; }

  /// Begins the first copies of queues, where `may_begin(copy)`.
  template <class MayBegin>
  void begin(MayBegin&& may_begin) {
    for (Queue& queue : queues_) {
      if (queue.runs || queue.copies.empty() || !may_begin(queue.copies.front())) continue;
      queue.runs = true;
      queue.left = queue.copies.front().bytes;
      changed_ = true;
    }
  }
  /// When the next copy ends; infinite if none runs.
  double next_end();
  /// Goes on until then, which is no later than next_end(); calls ended(copy) for those that do.
  template <class Ended>
  void advance(double time, Ended&& ended) {
    constexpr double rounding = 1e-10;  // seconds
    for (Queue& queue : queues_) {
      if (!queue.runs) continue;
      queue.left -= queue.rate * (time - now_);
      if (queue.left > rounding * queue.rate) continue;
      done_.push_back(queue.copies.front());
      queue.copies.pop_front();
      queue.runs = false;
      changed_ = true;
    }
    now_ = time;
    for (const Copy& copy : done_) ended(copy);
    done_.clear();
  }

 private:
  struct Queue {
    std::deque<Copy> copies;
    bool runs = false;  ///< The first does.
    double left = 0;    ///< Its bytes.
    double rate = 0;
  };
  void share();

  HomeLinks& home_links_;
  std::vector<Queue> queues_;
  std::vector<Copy> done_;
  double now_ = 0;
  bool changed_ = true;
  std::vector<int> routes_;
  std::vector<double> limits_;
  std::vector<double> rates_;
};

}  // namespace quadriga::linalg
