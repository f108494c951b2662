// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_rehearsal.cpp: a product on all devices, event by event, without an engine.
#include "linalg/product_rehearsal.h"
#include "linalg/real.h"

#include "linalg/shared_speed.h"
#include "memory/link_tokens.h"
#include "schedule/pace.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace quadriga::linalg {
namespace {

std::size_t slot(std::int64_t index) noexcept { return static_cast<std::size_t>(index); }

class Rehearsal {
 public:
  Rehearsal(const ProductTimes& times, HomeLinks& home_links, const Problem& problem,
            const ProductPlan& plan)
      : times_(times),
        home_links_(home_links),
        plan_(plan),
        accumulates_(problem.accumulate),
        streams_(times.streams()),
        rows_(plan.rows.count()),
        cols_(plan.cols.count()),
        sums_(plan.sum.count()),
        first_of_b_(slot(rows_ * sums_)),
        first_of_c_(first_of_b_ + slot(plan.sum_of_b.count() * cols_)),
        devices_(plan.orders.size()),
        on_device_((first_of_c_ + slot(rows_ * cols_)) * devices_.size(), Presence::none),
        outputs_(slot(rows_ * cols_)),
        copies_(home_links, 3 * devices_.size()) {
    for (std::int64_t k = 0; k < sums_; ++k)
      holder_.push_back(plan.sum_of_b.holder(plan.sum.first(k)));
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      devices_[d].stolen.assign(plan.orders[d].size(), false);
      for (const Product& product : plan.orders[d]) devices_[d].left += seconds(product, d);
    }
  }

  double run(double limit) {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t d = 0; d < devices_.size(); ++d) more |= issue_next(d);
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) go_on(d);
    while (true) {
      begin_copies();
      const double copied = copies_.next_end();
      double computed = endless;
      std::size_t next = 0;
      double left = 0;
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        left += devices_[d].left;
        const double end = devices_[d].speed.next_end();
        if (end < computed) computed = devices_[next = d].speed.next_end();
      }
      const double time = std::min(copied, computed);
      if (time == endless) return now_;
      if (time + left / static_cast<double>(devices_.size()) >= limit) return endless;
      now_ = time;
      copies_.advance(time, [this](const CopyClock::Copy& copy) { arrive(copy); });
      if (computed <= time) end(next);
    }
  }

 private:
  enum class Presence : std::uint8_t { none, coming, there };
  enum Queue : std::size_t { loads, stores, peers };
  struct Issued {
    double ahead = 0;  ///< Its seconds, with those of its copies.
    std::size_t owner = 0;
    std::uint32_t index = 0;  ///< In the owner's order.
  };
  struct Device {
    SharedSpeed speed;
    std::vector<Issued> waiting;  ///< Issued, and not begun,
    std::vector<Issued> begun;    ///< or begun, by the numbers that `speed` knows.
    std::vector<bool> stolen;     ///< Of its order, by others.
    std::size_t issued = 0;       ///< Up to where its order is,
    std::size_t fetched = 0;      ///< and up to where all is on its way.
    std::size_t on_it = 0;        ///< Issued ones that haven't ended,
    double ahead = 0;             ///< and their seconds, with those of their copies.
    double left = 0;              ///< Seconds of kernels that haven't ended.
    double loading = 0;           ///< Of copies from home that haven't.
  };
  struct Output {
    std::int64_t ended = 0;   ///< Steps,
    std::int64_t issued = 0;  ///< or issued ones,
    std::size_t place = 0;    ///< the last of them there.
  };
  struct Rect {
    std::int64_t rows;
    std::int64_t cols;
    std::int64_t all_rows;
  };

  const Product& product(std::size_t d, std::size_t index) const { return plan_.orders[d][index]; }
  std::size_t a_of(const Product& p) const { return slot(p.i + p.k * rows_); }
  std::size_t b_of(const Product& p) const {
    return first_of_b_ + slot(p.j + holder_[slot(p.k)] * cols_);
  }
  std::size_t output_of(const Product& p) const { return slot(p.i + p.j * rows_); }
  std::size_t c_of(const Product& p) const { return first_of_c_ + output_of(p); }
  Presence& on(std::size_t tile, std::size_t d) { return on_device_[tile * devices_.size() + d]; }
  double seconds(const Product& p, std::size_t d) const {
    return times_.product(plan_.rows.length(p.i), plan_.cols.length(p.j), plan_.sum.length(p.k), d);
  }
  Rect a_rect(const Product& p) const {
    return {plan_.rows.length(p.i), plan_.sum.length(p.k), plan_.rows.size};
  }
  Rect b_rect(const Product& p) const {
    return {plan_.sum_of_b.length(holder_[slot(p.k)]), plan_.cols.length(p.j), plan_.sum_of_b.size};
  }
  Rect c_rect(const Product& p) const {
    return {plan_.rows.length(p.i), plan_.cols.length(p.j), plan_.rows.size};
  }
  double bytes(const Rect& rect) const {
    return static_cast<double>(rect.rows * rect.cols) * times_.element_bytes();
  }
  double run_bytes(const Rect& rect) const {
    return rect.rows == rect.all_rows ? bytes(rect)
                                      : static_cast<double>(rect.rows) * times_.element_bytes();
  }

  /// The device from which a tile comes soonest, or nobody: from home; and that copy's seconds.
  double source(std::size_t tile, std::size_t d, double size, std::size_t& from) {
    constexpr double must_get_there = 2;
    double least = size / home_links_.rate(home_links_.load(d));
    from = CopyClock::nobody;
    for (std::size_t other = 0; other < devices_.size(); ++other) {
      if (other == d || on(tile, other) == Presence::none || home_links_.between(other, d) < 0)
        continue;
      const double needed = size / home_links_.rate(home_links_.between(other, d)) *
                            (on(tile, other) == Presence::there ? 1 : must_get_there);
      if (needed >= least) continue;
      least = needed;
      from = other;
    }
    return least;
  }

  /// The device by whose link from home a tile gets there sooner (Transfers::relay_for), or nobody.
  std::size_t relay(std::size_t tile, std::size_t d, double size) {
    const auto load = [&](std::size_t device) {
      return size / home_links_.rate(home_links_.load(device));
    };
    double least = devices_[d].loading + load(d);
    std::size_t best = CopyClock::nobody;
    for (std::size_t via = 0; via < devices_.size(); ++via) {
      if (via == d || home_links_.load(via) < 0 || home_links_.between(via, d) < 0) continue;
      if (on(tile, via) != Presence::none) return CopyClock::nobody;
      const double needed = load(via) + size / home_links_.rate(home_links_.between(via, d));
      if (needed >= load(d) || devices_[via].loading + needed >= least) continue;
      least = devices_[via].loading + needed;
      best = via;
    }
    return best;
  }

  /// Sends a tile on its way unless it is; the copy's seconds.
  double claim(std::size_t tile, std::size_t d, const Rect& rect) {
    if (on(tile, d) != Presence::none) return 0;
    CopyClock::Copy copy{.bytes = bytes(rect), .tile = tile, .to = d};
    const double seconds = source(tile, d, copy.bytes, copy.from);
    if (copy.from == CopyClock::nobody && home_links_.load(d) >= 0)
      if (const std::size_t via = relay(tile, d, copy.bytes); via != CopyClock::nobody) {
        claim(tile, via, rect);
        copy.from = via;
      }
    const bool is_home = copy.from == CopyClock::nobody && home_links_.load(d) < 0;
    on(tile, d) = is_home ? Presence::there : Presence::coming;
    if (is_home) return 0;
    if (copy.from == CopyClock::nobody) {
      copy.route = home_links_.load(d);
      copy.limit = home_links_.rate(copy.route, run_bytes(rect));
      devices_[d].loading += seconds;
      copies_.push(3 * d + loads, copy);
    } else {
      copy.route = home_links_.between(copy.from, d);
      copy.limit = home_links_.rate(copy.route);
      copies_.push(3 * d + peers, copy);
    }
    return seconds;
  }

  /// A tile of C whose last step is another device's.
  double claim_output(const Product& p, std::size_t d) {
    const Output& output = outputs_[output_of(p)];
    if (p.k == 0) return accumulates_ ? claim(c_of(p), d, c_rect(p)) : 0;
    if (output.place == d) return 0;
    on(c_of(p), d) = Presence::coming;
    CopyClock::Copy copy{
        .bytes = bytes(c_rect(p)), .tile = c_of(p), .to = d, .from = output.place, .version = p.k};
    // By way of the host where nothing joins the two.
    for (const int route : {home_links_.between(output.place, d), home_links_.load(d),
                            home_links_.store(output.place)})
      if (copy.route < 0) copy.route = route;
    copy.limit = home_links_.rate(copy.route);
    copies_.push(3 * d + peers, copy);
    return copy.seconds();
  }

  double claim_inputs(const Product& p, std::size_t d) {
    return claim(a_of(p), d, a_rect(p)) + claim(b_of(p), d, b_rect(p));
  }

  void begin_copies() {
    copies_.begin([this](const CopyClock::Copy& copy) {
      if (copy.from == CopyClock::nobody) return true;
      if (copy.version > 0) return outputs_[copy.tile - first_of_c_].ended == copy.version;
      return on(copy.tile, copy.from) == Presence::there;
    });
  }

  void arrive(const CopyClock::Copy& copy) {
    if (copy.to == CopyClock::nobody) return;
    on(copy.tile, copy.to) = Presence::there;
    Device& device = devices_[copy.to];
    if (copy.from == CopyClock::nobody)
      device.loading -= copy.bytes / home_links_.rate(home_links_.load(copy.to));
    go_on(copy.to);
  }

  bool wants_more(const Device& device) const {
    return device.on_it < pace::tasks_a_stream * streams_ ||
           (device.ahead < pace::issued_seconds && device.on_it < pace::most_a_stream * streams_);
  }

  /// False if all of its order is issued, or stolen.
  bool has_own(std::size_t d) {
    Device& device = devices_[d];
    while (device.issued < device.stolen.size() && device.stolen[device.issued]) ++device.issued;
    return device.issued < device.stolen.size();
  }

  bool issue_next(std::size_t d) {
    if (!wants_more(devices_[d])) return false;
    if (!has_own(d)) return steal(d);
    issue(d, d, devices_[d].issued++);
    return true;
  }

  void issue(std::size_t d, std::size_t owner, std::size_t index) {
    Device& device = devices_[d];
    const Product& p = product(owner, index);
    const double fetch = claim_inputs(p, d) + claim_output(p, d);
    device.waiting.push_back({fetch + seconds(p, d), owner, static_cast<std::uint32_t>(index)});
    ++device.on_it;
    device.ahead += device.waiting.back().ahead;
    Output& output = outputs_[output_of(p)];
    output.issued = p.k + 1;
    output.place = d;
  }

  std::size_t victim_of(std::size_t thief) {
    std::size_t victim = thief;
    double most = 0;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (d == thief || devices_[d].left <= most || !has_own(d)) continue;
      most = devices_[d].left;
      victim = d;
    }
    return victim;
  }

  /// Who has nothing left takes from who has most, as Placement and the default policy do: of
  /// products that it would end sooner, the one of whose operands it has most.
  bool steal(std::size_t thief) {
    const std::size_t victim = victim_of(thief);
    if (victim == thief) return false;
    Device& from = devices_[victim];
    const Device& to = devices_[thief];
    const double busy = to.ahead / static_cast<double>(streams_);
    double ahead = from.ahead / static_cast<double>(streams_);
    double best = -endless;
    std::size_t found = from.stolen.size();
    std::size_t looked = 0;
    for (std::size_t i = from.issued; i < from.stolen.size() && looked < pace::most_looked; ++i) {
      const Product& p = product(victim, i);
      if (from.stolen[i] || outputs_[output_of(p)].issued != p.k) continue;
      if (to.on_it > streams_ && outputs_[output_of(p)].ended != p.k) continue;
      ++looked;
      const double there = seconds(p, victim);
      const double end = ahead + there;
      ahead += there / static_cast<double>(streams_);
      double here = 0;
      const double fetch = fetch_seconds(p, thief, here);
      if (end - pace::crowding * fetch - busy - seconds(p, thief) <= 0 || here <= best) continue;
      best = here;
      found = i;
    }
    if (found == from.stolen.size()) return false;
    const Product& p = product(victim, found);
    from.stolen[found] = true;
    from.left -= seconds(p, victim);
    devices_[thief].left += seconds(p, thief);
    issue(thief, victim, found);
    return true;
  }

  /// To bring a product's operands; `here`: bytes that are there, less those that aren't.
  double fetch_seconds(const Product& p, std::size_t d, double& here) {
    double sum = 0;
    const auto count = [&](std::size_t tile, const Rect& rect) {
      const double size = bytes(rect);
      const bool is_there = on(tile, d) != Presence::none;
      here += is_there ? size : -size;
      std::size_t from = 0;
      if (!is_there) sum += source(tile, d, size, from);
    };
    count(a_of(p), a_rect(p));
    count(b_of(p), b_rect(p));
    if (p.k == 0 && !accumulates_) return sum;
    const double size = bytes(c_rect(p));
    here -= size;
    const std::size_t from = outputs_[output_of(p)].place;
    const int route = p.k > 0 && from != d ? home_links_.between(from, d) : home_links_.load(d);
    return sum + size / home_links_.rate(route) * (p.k + 1 < sums_ ? pace::there_and_back : 1);
  }

  /// Begins what can, and brings what it will need.
  void go_on(std::size_t d) {
    Device& device = devices_[d];
    for (auto at = device.waiting.begin();
         at != device.waiting.end() && device.speed.running() < streams_;) {
      const Product& p = product(at->owner, at->index);
      if (!can_begin(p, d)) {
        ++at;
        continue;
      }
      device.speed.begin(static_cast<std::uint32_t>(device.begun.size()), seconds(p, d), now_);
      device.begun.push_back(*at);
      at = device.waiting.erase(at);
    }
    device.fetched = std::max(device.fetched, device.issued);
    for (; device.fetched < device.stolen.size(); ++device.fetched) {
      if (!tokens_to_device.are_left(copies_.copies(3 * d + loads).size(), device.loading)) break;
      if (!device.stolen[device.fetched]) claim_inputs(product(d, device.fetched), d);
    }
  }

  bool can_begin(const Product& p, std::size_t d) {
    if (on(a_of(p), d) != Presence::there || on(b_of(p), d) != Presence::there) return false;
    if (outputs_[output_of(p)].ended != p.k) return false;
    return (p.k == 0 && !accumulates_) || on(c_of(p), d) == Presence::there;
  }

  void end(std::size_t d) {
    Device& device = devices_[d];
    const Issued ended = device.begun[device.speed.end(now_)];
    const Product& p = product(ended.owner, ended.index);
    Output& output = outputs_[output_of(p)];
    --device.on_it;
    device.ahead -= ended.ahead;
    device.left -= seconds(p, d);
    output.ended = p.k + 1;
    for (std::size_t other = 0; other < devices_.size(); ++other)
      if (on(c_of(p), other) == Presence::there) on(c_of(p), other) = Presence::none;
    on(c_of(p), d) = Presence::there;
    if (p.k + 1 == sums_ && home_links_.store(d) >= 0) {
      const Rect rect = c_rect(p);
      CopyClock::Copy copy{.route = home_links_.store(d), .bytes = bytes(rect), .tile = c_of(p)};
      copy.limit = home_links_.rate(copy.route, run_bytes(rect));
      copies_.push(3 * d + stores, copy);
    }
    while (issue_next(d)) {
    }
    go_on(d);
  }

  const ProductTimes& times_;
  HomeLinks& home_links_;
  const ProductPlan& plan_;
  bool accumulates_;
  std::size_t streams_;
  std::int64_t rows_;
  std::int64_t cols_;
  std::int64_t sums_;
  std::size_t first_of_b_;
  std::size_t first_of_c_;
  std::vector<Device> devices_;
  std::vector<Presence> on_device_;  ///< Of tiles of A, B and C, on each device.
  std::vector<Output> outputs_;
  std::vector<std::int64_t> holder_;  ///< The tile of B for each step.
  CopyClock copies_;
  double now_ = 0;
};

}  // namespace

double rehearse(const ProductTimes& times, HomeLinks& home_links, const Problem& problem,
                const ProductPlan& plan, double limit) {
  return Rehearsal(times, home_links, problem, plan).run(limit);
}

}  // namespace quadriga::linalg
