// SPDX-License-Identifier: BSD-3-Clause
// bench/order_line.h: what is expected of an order between two powers of two.
#pragma once

#include <cmath>

namespace quadriga::bench {

/// On the line between the rates of the powers of two below and above an order of at least 1;
/// `rate_of(order)` is asked for those.
template <class RateOf>
double on_the_line(double order, RateOf rate_of) {
  const double below = std::exp2(std::floor(std::log2(order)));
  const double low = rate_of(below);
  return order == below ? low : low + (rate_of(2 * below) - low) * (order - below) / below;
}

}  // namespace quadriga::bench
