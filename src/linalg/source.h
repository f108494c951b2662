// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/source.h: the source that devices have a kernel for.
#pragma once

#include <quadriga/linalg.h>

#include "linalg/kernels/covariance.h"

namespace quadriga::linalg {

class CovarianceSource final : public Source {
 public:
  explicit CovarianceSource(kernels::Covariance values) : values_(std::move(values)) {}
  void read(std::int64_t row, std::int64_t col, const View& out) const override;
  const kernels::Covariance& values() const noexcept { return values_; }

 private:
  kernels::Covariance values_;
};

}  // namespace quadriga::linalg
