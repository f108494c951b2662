// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/recorded_ahead.cpp: a solve of zeros, in the order of any solve.
#include "sparse/recorded_ahead.h"

#include <quadriga/error.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "sparse/kernels/scalars.h"
#include "sparse/part_data.h"

namespace quadriga::sparse {
namespace {

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
/// Zeros whose pages the system needn't give as long as they are only read.
using Zeros = std::unique_ptr<void, Free>;

void iterate(PartData& data, const std::vector<Data>& x) {
  constexpr int until_recorded = 2;
  for (int pass = 0; pass < until_recorded; ++pass)
    for (std::int64_t count = 1; count <= history_length && data.is_recorded(); count *= 2)
      data.iterate(x, count);
}

void solve_zeros(PartData& data, const std::vector<Data>& b, const std::vector<Data>& x) {
  data.bring(b, x);
  data.residual(b, {false});
  data.restart({});
  if (data.method() != CgMethod::classic) data.begin_steps(false);
  iterate(data, x);
  // As at a solve's end.
  data.load(x);
  data.multiply({false});
  data.residual(b, {});
  data.restart({});
  data.wait({});
}

}  // namespace

double record_ahead(const SolverContent& content) {
  if (!content.is_alone_recorded() && !content.are_joint()) return 0;
  if (content.engine().options().virtual_clock) return 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto elements = static_cast<std::size_t>(content.rows());
  const Zeros b(std::calloc(elements, size_of(content.dtype())));
  const Zeros x(std::calloc(elements, size_of(content.dtype())));
  if (!b || !x) return 0;
  try {
    PartLease data(content, 1);
    data->use(content.method());
    const std::vector<Data> b_parts = data->add_vector(b.get());
    const std::vector<Data> x_parts = data->add_vector(x.get());
    solve_zeros(*data, b_parts, x_parts);
    data.end_call();
  } catch (const Error&) {
    // A lost device, or memory that isn't enough.
    return 0;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace quadriga::sparse
