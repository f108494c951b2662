// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/bound.cpp: bisection over the time, with a small linear program at each.
#include "pipeline/bound.h"

#include <quadriga/error.h>

#include <algorithm>
#include <cmath>

namespace quadriga {
namespace {

/// The most work that devices can share within some time: max sum x, A x <= b, x >= 0, b >= 0, by
/// the simplex method from x = 0, with Bland's rule, under which it ends.
class Shares {
 public:
  Shares(std::span<const StreamResource> resources, std::size_t devices, std::size_t pieces,
         double within)
      : columns_(devices), rows_(resources.size() + (pieces > 0 ? devices : 0)) {
    const std::size_t width = devices + rows_ + 1;
    table_.assign(rows_ + 1, std::vector<double>(width, 0.0));
    for (std::size_t r = 0; r < resources.size(); ++r) {
      for (std::size_t d = 0; d < devices; ++d) table_[r][d] = resources[r].seconds[d] / within;
      table_[r].back() = left(resources[r], within) / within;
    }
    for (std::size_t r = resources.size(); r < rows_; ++r) {
      const std::size_t d = r - resources.size();
      table_[r][d] = 1;
      table_[r].back() = whole_share(resources, d, pieces, within);
    }
    for (std::size_t r = 0; r < rows_; ++r) {
      table_[r][devices + r] = 1;
      basis_.push_back(devices + r);
    }
    for (std::size_t d = 0; d < devices; ++d) table_[rows_][d] = can_work(resources, d) ? -1 : 0;
    solve();
  }

  double work() const { return table_[rows_].back(); }
  double share(std::size_t device) const {
    for (std::size_t r = 0; r < rows_; ++r)
      if (basis_[r] == device) return table_[r].back();
    return 0;
  }

  static bool can_work(std::span<const StreamResource> resources, std::size_t device) {
    return std::ranges::all_of(
        resources, [&](const StreamResource& r) { return std::isfinite(r.seconds[device]); });
  }

 private:
  static constexpr double tiny = 1e-12;

  /// A resource that has no time left carries nothing.
  static double left(const StreamResource& resource, double within) {
    return std::max(0.0, within - resource.fixed - resource.idle);
  }
  /// The most that a device can have, in whole pieces.
  static double whole_share(std::span<const StreamResource> resources, std::size_t device,
                            std::size_t pieces, double within) {
    double most = 1;
    for (const StreamResource& r : resources)
      if (r.seconds[device] > 0) most = std::min(most, left(r, within) / r.seconds[device]);
    constexpr double tolerance = 1e-9;  // of the bisection, beside a piece
    const auto all = static_cast<double>(pieces);
    return std::floor(most * all + tolerance * all) / all;
  }

  void solve() {
    while (true) {
      std::size_t entering = 0;
      const std::size_t width = columns_ + rows_;
      while (entering < width && table_[rows_][entering] >= -tiny) ++entering;
      if (entering == width) return;
      const std::size_t leaving = leaving_row(entering);
      if (leaving == rows_) return;  // unbounded: devices that nothing limits
      pivot(leaving, entering);
    }
  }

  std::size_t leaving_row(std::size_t entering) const {
    std::size_t best = rows_;
    for (std::size_t r = 0; r < rows_; ++r) {
      if (table_[r][entering] <= tiny) continue;
      if (best == rows_) {
        best = r;
        continue;
      }
      const double ratio = table_[r].back() / table_[r][entering];
      const double least = table_[best].back() / table_[best][entering];
      if (ratio < least || (ratio == least && basis_[r] < basis_[best])) best = r;
    }
    return best;
  }

  void pivot(std::size_t row, std::size_t column) {
    std::vector<double>& pivoted = table_[row];
    const double by = pivoted[column];
    for (double& value : pivoted) value /= by;
    for (std::size_t r = 0; r <= rows_; ++r) {
      const double factor = table_[r][column];
      if (r == row || factor == 0) continue;
      for (std::size_t c = 0; c < pivoted.size(); ++c) table_[r][c] -= factor * pivoted[c];
    }
    basis_[row] = column;
  }

  std::size_t columns_;
  std::size_t rows_;
  std::vector<std::vector<double>> table_;
  std::vector<std::size_t> basis_;
};

/// What a device that can't work is charged is never used; the tableau needs numbers.
std::vector<StreamResource> with_finite(std::span<const StreamResource> resources,
                                        std::size_t devices) {
  std::vector<StreamResource> finite(resources.begin(), resources.end());
  for (std::size_t d = 0; d < devices; ++d)
    if (!Shares::can_work(resources, d))
      for (StreamResource& resource : finite) resource.seconds[d] = 0;
  return finite;
}

double least_seconds(std::span<const StreamResource> resources, std::size_t devices,
                     std::size_t pieces, const std::vector<bool>& working) {
  double low = 0;
  double high = 0;
  for (const StreamResource& r : resources) low = std::max(low, r.fixed > 0 ? r.fixed + r.idle : 0);
  for (std::size_t d = 0; d < devices; ++d) {
    if (!working[d]) continue;
    double alone = low;
    for (const StreamResource& r : resources)
      if (r.seconds[d] > 0) alone = std::max(alone, r.seconds[d] + r.fixed + r.idle);
    high = high == 0 ? alone : std::min(high, alone);
  }
  constexpr int steps = 100;
  for (int i = 0; i < steps && high - low > 1e-10 * high; ++i) {
    const double middle = (low + high) / 2;
    (Shares(resources, devices, pieces, middle).work() >= 1 - 1e-9 ? high : low) = middle;
  }
  return high;
}

}  // namespace

StreamBound stream_bound(std::span<const StreamResource> resources, std::size_t devices,
                         std::size_t pieces) {
  for (const StreamResource& r : resources)
    require(r.seconds.size() == devices,
            "stream_bound(): resource '" + r.name + "' needs one time for each device");
  std::vector<bool> working(devices);
  for (std::size_t d = 0; d < devices; ++d) working[d] = Shares::can_work(resources, d);
  require(std::ranges::any_of(working, [](bool each) { return each; }),
          "stream_bound(): no device can do the work");
  std::vector<StreamResource> finite = with_finite(resources, devices);
  // A device that can't work takes none.
  for (std::size_t d = 0; d < devices; ++d) {
    if (working[d]) continue;
    StreamResource shut{"a device that can't work", std::vector<double>(devices, 0.0), 0, 0};
    shut.seconds[d] = 1;
    shut.idle = 1e300;
    finite.push_back(shut);
  }
  StreamBound bound;
  bound.seconds = least_seconds(finite, devices, pieces, working);
  const Shares shares(finite, devices, pieces, std::max(bound.seconds, 1e-300));
  double sum = 0;
  for (std::size_t d = 0; d < devices; ++d) sum += bound.shares.emplace_back(shares.share(d));
  for (double& share : bound.shares)
    share = sum > 0 ? share / sum : 1.0 / static_cast<double>(devices);
  double best = bound.seconds;
  for (std::size_t r = 0; r < resources.size(); ++r) {
    std::vector<StreamResource> relieved = finite;
    for (double& seconds : relieved[r].seconds) seconds *= 0.5;
    relieved[r].fixed *= 0.5;
    const double without = least_seconds(relieved, devices, pieces, working);
    if (without < best * (1 - 1e-9)) {
      best = without;
      bound.limit = r;
    }
  }
  return bound;
}

}  // namespace quadriga
