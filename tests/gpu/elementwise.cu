// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/elementwise.cu: functors of quadriga/cuda.cuh, as users write them.
#include "gpu/elementwise.h"

#include <quadriga/cuda.cuh>

namespace quadriga {
namespace {

struct Axpy : Factor {
  __host__ __device__ void operator()(const double& x, double& y) const { y += value * x; }
};

struct Product : Factor {
  __host__ __device__ void operator()(const double& x, const float& y, double& z) const {
    z = value * x * y;
  }
};

}  // namespace

Codelet elementwise_axpy() {
  return elementwise<Axpy, const double, double>("axpy", {Access::read, Access::update});
}

Codelet elementwise_product() {
  return elementwise<Product, const double, const float, double>(
      "product", {Access::read, Access::read, Access::write});
}

}  // namespace quadriga
