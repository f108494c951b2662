// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/spectrum.cpp: the Lanczos matrix of conjugate gradients, and its eigenvalues.
#include "sparse/spectrum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "sparse/part_data.h"

namespace quadriga::sparse {
namespace {

/// Iterations, each of which costs a product, beside the hundreds of a solve.
constexpr int most_steps = 20;

/// The eigenvalues of a tridiagonal matrix by Jacobi rotations, and the last elements of their
/// vectors.
class SmallEigenvalues {
 public:
  SmallEigenvalues(const std::vector<double>& diagonal, const std::vector<double>& beside)
      : size_(diagonal.size()), a_(size_ * size_), last_(size_) {
    for (std::size_t i = 0; i < size_; ++i) at(i, i) = diagonal[i];
    for (std::size_t i = 0; i + 1 < size_; ++i) at(i, i + 1) = at(i + 1, i) = beside[i];
    last_.back() = 1;
    constexpr int most_sweeps = 50;
    for (int sweep = 0; sweep < most_sweeps && rotate_all(); ++sweep) {
    }
  }
  double value(std::size_t i) const { return a_[i * size_ + i]; }
  double last_element(std::size_t i) const { return last_[i]; }

 private:
  double& at(std::size_t i, std::size_t j) { return a_[i * size_ + j]; }

  /// Whether there was anything left to do.
  bool rotate_all() {
    bool any = false;
    for (std::size_t p = 0; p < size_; ++p)
      for (std::size_t q = p + 1; q < size_; ++q) {
        const double scale = std::abs(at(p, p)) + std::abs(at(q, q));
        if (!(std::abs(at(p, q)) > std::numeric_limits<double>::epsilon() * scale)) continue;
        rotate(p, q);
        any = true;
      }
    return any;
  }

  void rotate(std::size_t p, std::size_t q) {
    const double ratio = (at(q, q) - at(p, p)) / (2 * at(p, q));
    const double tangent = std::copysign(1 / (std::abs(ratio) + std::hypot(ratio, 1)), ratio);
    const double cosine = 1 / std::hypot(tangent, 1);
    const double sine = tangent * cosine;
    const auto turn = [&](double& x, double& y) {
      const double was = x;
      x = cosine * was - sine * y;
      y = sine * was + cosine * y;
    };
    for (std::size_t k = 0; k < size_; ++k) turn(at(k, p), at(k, q));
    for (std::size_t k = 0; k < size_; ++k) turn(at(p, k), at(q, k));
    turn(last_[p], last_[q]);
  }

  std::size_t size_;
  std::vector<double> a_;
  std::vector<double> last_;
};

/// Symmetric and tridiagonal; behind the last row there is one more element beside the diagonal.
struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> beside;
};

Tridiagonal lanczos_matrix(std::span<const CgStep> steps, CgStep before = {1, 0}) {
  Tridiagonal made;
  for (const CgStep& each : steps) {
    const double next = std::sqrt(each.beta) / each.alpha;
    if (!std::isfinite(1 / each.alpha) || !std::isfinite(next)) break;
    made.diagonal.push_back(1 / each.alpha + before.beta / before.alpha);
    made.beside.push_back(next);
    before = each;
  }
  return made;
}

/// Eigenvalues below x, by the signs of pivots.
std::size_t count_below(const Tridiagonal& t, double x) {
  std::size_t count = 0;
  double pivot = 1;
  for (std::size_t i = 0; i < t.diagonal.size(); ++i) {
    const double left = i > 0 ? t.beside[i - 1] : 0;
    pivot = t.diagonal[i] - x - left * left / pivot;
    if (pivot == 0) pivot = -std::numeric_limits<double>::min();
    count += pivot < 0;
  }
  return count;
}

/// The eigenvalue that has so many below it, of a positive definite matrix.
double eigenvalue(const Tridiagonal& t, std::size_t below, double bound) {
  constexpr double accuracy = 1e-7;
  double low = 0, high = bound;
  while (high - low > accuracy * high) {
    const double middle = (low + high) / 2;
    (count_below(t, middle) > below ? high : low) = middle;
    if (high < std::numeric_limits<double>::epsilon() * accuracy * bound) break;
  }
  return high;
}

template <class Real>
void fill_randomly(std::vector<std::byte>& vector) {
  std::mt19937_64 random(1);
  auto* const numbers = reinterpret_cast<Real*>(vector.data());
  // The same numbers on all platforms: distributions may differ.
  for (std::size_t i = 0; i < vector.size() / sizeof(Real); ++i)
    numbers[i] = static_cast<Real>(std::ldexp(static_cast<double>(random() >> 11), -52) - 1);
}

/// The steps of as many iterations as there were.
std::vector<CgStep> iterate(const SolverContent& content, const void* b, void* x) {
  PartData data(content, 1, MKind::blocks);
  std::vector<std::vector<std::byte>> memory(
      most_steps,
      std::vector<std::byte>(data.states_bytes() + static_cast<std::size_t>(history_bytes(1))));
  std::vector<Data> snapshots;
  for (auto& each : memory)
    snapshots.push_back(data.add_home(each.data(), static_cast<std::int64_t>(each.size())));
  const std::vector<Data> right = data.add_vector(b);
  const std::vector<Data> solution = data.add_vector(x);
  data.residual(right, {false});
  data.restart({});
  for (const Data& each : snapshots) {
    data.iterate(solution, 1);
    data.snapshot(each);
  }
  for (const Data& each : snapshots) data.wait_for(each);
  data.wait(solution);
  data.end_call();
  std::vector<CgStep> steps;
  for (const auto& each : memory) {
    ColumnState state;
    std::memcpy(&state, each.data(), sizeof state);
    if (state.iterations != static_cast<std::int64_t>(steps.size()) + 1) break;
    steps.push_back({state.alpha, state.beta});
  }
  return steps;
}

}  // namespace

EigenvalueBounds bounds_of(std::span<const CgStep> steps) {
  const auto [diagonal, beside] = lanczos_matrix(steps);
  if (diagonal.empty()) return {1, 1};
  const double left = beside.back();
  const SmallEigenvalues values(diagonal, beside);
  EigenvalueBounds bounds{values.value(0), values.value(0)};
  double largest = -INFINITY;
  for (std::size_t i = 0; i < diagonal.size(); ++i) {
    bounds.low = std::min(bounds.low, values.value(i));
    if (values.value(i) <= largest) continue;
    largest = values.value(i);
    bounds.high = largest + left * std::abs(values.last_element(i));
  }
  // Where rounding says that there are none the matrix is nearly singular.
  bounds.low = std::max(bounds.low, std::numeric_limits<double>::epsilon() * bounds.high);
  return bounds.high > 0 ? bounds : EigenvalueBounds{1, 1};
}

double condition_of(std::span<const CgStep> steps, CgStep before) {
  const Tridiagonal t = lanczos_matrix(steps, before);
  if (t.diagonal.empty()) return 1;
  double bound = 0;  // Of all eigenvalues (Gershgorin).
  for (std::size_t i = 0; i < t.diagonal.size(); ++i)
    bound = std::max(bound, t.diagonal[i] + t.beside[i] + (i > 0 ? t.beside[i - 1] : 0));
  return std::max(1.0, eigenvalue(t, t.diagonal.size() - 1, bound) / eigenvalue(t, 0, bound));
}

EigenvalueBounds estimate_bounds(const SolverContent& content) {
  const EngineOptions& options = content.engine().options();
  if (content.rows() == 0 || (options.virtual_clock && !options.compute)) return {1, 1};
  std::vector<std::byte> b(static_cast<std::size_t>(content.rows()) * size_of(content.dtype()));
  const bool is_single = content.dtype() == DType::float32 || content.dtype() == DType::complex64;
  is_single ? fill_randomly<float>(b) : fill_randomly<double>(b);
  std::vector<std::byte> x(b.size());
  return bounds_of(iterate(content, b.data(), x.data()));
}

}  // namespace quadriga::sparse
