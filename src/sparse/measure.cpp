// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/measure.cpp: products of a vector that stays where it is.
#include "sparse/measure.h"

#include <vector>

#include "sparse/part_data.h"

namespace quadriga::sparse {
namespace {

/// Numbers of similar size: a vector of zeros would need less power.
template <class Real>
void fill(std::vector<std::byte>& vector) {
  auto* const numbers = reinterpret_cast<Real*>(vector.data());
  for (std::size_t i = 0; i < vector.size() / sizeof(Real); ++i)
    numbers[i] = static_cast<Real>(1) / static_cast<Real>(1 + i % 61);
}

std::vector<std::byte> vector_of(DType dtype, std::int64_t elements) {
  std::vector<std::byte> vector(static_cast<std::size_t>(elements) * size_of(dtype));
  const bool is_single = dtype == DType::float32 || dtype == DType::complex64;
  is_single ? fill<float>(vector) : fill<double>(vector);
  return vector;
}

}  // namespace

double measure_product(const SolverContent& content, std::int64_t count, std::int64_t columns,
                       ProductMode mode) {
  const std::vector<std::byte> memory = vector_of(content.dtype(), content.rows() * columns);
  PartLease data(content, columns);
  const std::vector<Data> x = data->add_vector(memory.data());
  const bool has_exchange = !content.transfers().empty() && mode != ProductMode::compute;
  const auto run = [&](std::int64_t products, bool loads) {
    for (std::int64_t i = 0; i < products; ++i) {
      if (loads) data->load(x);
      data->multiply({false}, mode);
    }
    data->wait({});
  };
  run(1, true);
  const Nanoseconds begin = content.engine().now();
  run(count, has_exchange);
  const Nanoseconds end = content.engine().now();
  data->wait(x);
  data.end_call();
  return static_cast<double>(end - begin) * 1e-9 / static_cast<double>(count);
}

}  // namespace quadriga::sparse
