// SPDX-License-Identifier: BSD-3-Clause
// bench/models/model.h: what programs in several programming models have in common: the matrix, how
// it is divided, conjugate gradients, and what is told.
//
// One or two devices have half of the rows each. The columns of a half's own rows are its local
// matrix, the others its remote one, both in ELLPACK-R: a product of the local one needs nothing of
// the other device. Two queues per device: one computes, the other fetches the other's half of p
// meanwhile (Hahnfeld et al., WACCP 2017; Hahnfeld, Cramer et al., IWOMP 2017).
//
// A model is a class with these functions, which may return before they are done. Queues run in
// order; `d` is a device.
//   Model(halves)                copies the halves' matrices to the devices
//   set_vectors(d, x, r, p)      copies from the host: x, r and p of the half
//   send(d)                      second queue: the half of p goes to the host, if that is the way
//   fetch(d)                     second queue: the other half of p, when the other has made it
//   multiply_local(d)            first queue: q = local * p
//   multiply_remote(d)           first queue, after fetch: q += remote * (the other's p)
//   step(d, alpha)               x += alpha*p, r -= alpha*q
//   turn(d, beta)                p = r + beta*p
//   p_q(d), r_r(d)               dot products; they wait for the first queue
//   finish(d), get_x(d, x)       waits for both queues; copies x to the host
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace models {

/// Rows of varying lengths, padded to the longest; element j of row i is at j*rows + i.
struct EllpackR {
  int rows = 0;
  int width = 0;
  std::vector<int> lengths;
  std::vector<int> columns;  ///< Relative to the half's first row, or the other's.
  std::vector<double> values;
};

struct Half {
  int first = 0;
  int rows = 0;
  int other_rows = 0;  ///< Of p that the remote matrix needs.
  EllpackR local;
  EllpackR remote;
};

/// A row as (column, value); calls `visit` for each element.
template <class Visit>
void visit_row(int n, int row, Visit visit) {
  const int x = row % n, y = row / n % n, z = row / n / n;
  for (int dz = -1; dz <= 1; ++dz)
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const bool is_inside =
            x + dx >= 0 && x + dx < n && y + dy >= 0 && y + dy < n && z + dz >= 0 && z + dz < n;
        if (is_inside) visit(row + dx + n * (dy + n * dz), dx || dy || dz ? -1.0 : 26.0);
      }
}

/// The columns from `first` on and before `last` of some rows of the 27-point grid of n^3.
inline EllpackR ellpack(int n, int first_row, int rows, int first, int last) {
  EllpackR made;
  made.rows = rows;
  made.lengths.assign(static_cast<std::size_t>(rows), 0);
  const auto each = [&](auto visit) {
    for (int i = 0; i < rows; ++i) {
      int j = 0;
      visit_row(n, first_row + i, [&](int column, double value) {
        if (column >= first && column < last) visit(i, j++, column - first, value);
      });
      made.lengths[static_cast<std::size_t>(i)] = j;
      made.width = made.width < j ? j : made.width;
    }
  };
  each([](int, int, int, double) {});
  const std::size_t size = static_cast<std::size_t>(made.width) * static_cast<std::size_t>(rows);
  made.columns.assign(size, 0);
  made.values.assign(size, 0);
  each([&](int i, int j, int column, double value) {
    const std::size_t at =
        static_cast<std::size_t>(j) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(i);
    made.columns[at] = column;
    made.values[at] = value;
  });
  return made;
}

inline std::vector<Half> halves_of(int n, int devices) {
  const int rows = n * n * n;
  std::vector<Half> halves(static_cast<std::size_t>(devices));
  for (int d = 0; d < devices; ++d) {
    Half& half = halves[static_cast<std::size_t>(d)];
    half.first = rows / devices * d;
    half.rows = d + 1 < devices ? rows / devices : rows - half.first;
    half.other_rows = rows - half.rows;
    half.local = ellpack(n, half.first, half.rows, half.first, half.first + half.rows);
    if (devices == 2 && d == 0) half.remote = ellpack(n, half.first, half.rows, half.rows, rows);
    if (devices == 2 && d == 1) half.remote = ellpack(n, half.first, half.rows, 0, half.first);
  }
  return halves;
}

inline double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

struct Options {
  int n = 40;  ///< Points along each side of the grid.
  int devices = 1;
  bool overlap = true;
  std::string exchange = "host";
  int products = 50;  ///< That are timed alone.

  static Options read(int count, char** words) {
    Options options;
    for (int i = 1; i + 1 < count; i += 2) {
      const std::string name = words[i], value = words[i + 1];
      if (name == "--n") options.n = std::atoi(value.c_str());
      if (name == "--devices") options.devices = std::atoi(value.c_str());
      if (name == "--overlap") options.overlap = value == "yes";
      if (name == "--exchange") options.exchange = value;
      if (name == "--products") options.products = std::atoi(value.c_str());
    }
    if (options.n < 2 || options.n > 1000 || options.devices < 1 || options.devices > 2) {
      std::fprintf(stderr, "expected --n 2 to 1000 and --devices 1 or 2\n");
      std::exit(2);
    }
    return options;
  }
};

/// q = A*p on all devices.
template <class Model>
void multiply(Model& model, const Options& options) {
  const auto all = [&](auto work) {
    for (int d = 0; d < options.devices; ++d) work(d);
  };
  if (options.devices == 1) return model.multiply_local(0);
  all([&](int d) { model.send(d); });
  all([&](int d) { model.fetch(d); });
  if (!options.overlap) all([&](int d) { model.finish(d); });
  all([&](int d) { model.multiply_local(d); });
  all([&](int d) { model.multiply_remote(d); });
}

/// ||b - A*x|| / ||b||, by the definition of the matrix.
inline double residual_of(int n, const std::vector<double>& x, const std::vector<double>& b) {
  double left = 0, all = 0;
  for (int row = 0; row < n * n * n; ++row) {
    double sum = b[static_cast<std::size_t>(row)];
    visit_row(n, row, [&](int column, double value) {
      sum -= value * x[static_cast<std::size_t>(column)];
    });
    left += sum * sum;
    all += b[static_cast<std::size_t>(row)] * b[static_cast<std::size_t>(row)];
  }
  return std::sqrt(left / all);
}

/// Conjugate gradients to 1e-8 from zero; prints a line of JSON. Returns the exit status.
template <class Model>
int run(const char* name, const Options& options) {
  const int rows = options.n * options.n * options.n;
  std::vector<double> b(static_cast<std::size_t>(rows)), x(b.size());
  std::uint32_t random = 1;
  for (double& each : b) each = (random = random * 1664525u + 1013904223u) / 4294967296.0 - 0.5;
  const std::vector<Half> halves = halves_of(options.n, options.devices);
  const double begin = seconds_now();
  Model model(halves, options);
  const auto all = [&](auto work) {
    for (int d = 0; d < options.devices; ++d) work(d, halves[static_cast<std::size_t>(d)].first);
  };
  const auto sum = [&](auto part) {
    double total = 0;
    all([&](int d, int) { total += part(d); });
    return total;
  };
  all([&](int d, int first) { model.set_vectors(d, &x[first], &b[first], &b[first]); });
  all([&](int d, int) { model.finish(d); });
  const double copied = seconds_now();
  for (int i = 0; i < options.products; ++i) multiply(model, options);
  all([&](int d, int) { model.finish(d); });
  const double multiplied = seconds_now();
  double r_r = sum([&](int d) { return model.r_r(d); });
  const double wanted = 1e-16 * r_r;
  int iterations = 0;
  for (; r_r > wanted && iterations < 10 * rows; ++iterations) {
    multiply(model, options);
    const double alpha = r_r / sum([&](int d) { return model.p_q(d); });
    all([&](int d, int) { model.step(d, alpha); });
    const double next = sum([&](int d) { return model.r_r(d); });
    all([&](int d, int) { model.turn(d, next / r_r); });
    r_r = next;
  }
  all([&](int d, int first) { model.get_x(d, &x[first]); });
  const double end = seconds_now();
  std::string where = model.where();
  for (char& each : where) each = each == '"' || each == '\\' ? ' ' : each;
  const double residual = residual_of(options.n, x, b);
  std::printf(
      "{\"model\": \"%s\", \"n\": %d, \"devices\": %d, \"exchange\": \"%s\", \"overlap\": %s, "
      "\"on\": \"%s\", \"product_seconds\": %.6g, \"iterations\": %d, \"solve_seconds\": %.6g, "
      "\"total_seconds\": %.6g, \"residual\": %.3g}\n",
      name, options.n, options.devices, options.exchange.c_str(),
      options.overlap ? "true" : "false", where.c_str(), (multiplied - copied) / options.products,
      iterations, end - multiplied, copied - begin + end - multiplied, residual);
  return residual <= 2e-8 ? 0 : 1;
}

}  // namespace models
