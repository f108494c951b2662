// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/check.cpp: the checks and their messages.
#include "linalg/check.h"

#include "base/config.h"
#include "base/units.h"
#include "device/kinds.h"
#include "linalg/resident.h"
#include "linalg/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace quadriga::linalg {

std::string shape_of(std::int64_t rows, std::int64_t cols) {
  return fmt::format("{} x {}", rows, cols);
}

void check_matrix(std::string_view name, const Matrix& matrix) {
  if (matrix.rows() < 0 || matrix.cols() < 0)
    fail(Errc::invalid_argument, fmt::format("{} is {}: sizes must not be negative", name,
                                             shape_of(matrix.rows(), matrix.cols())));
  if (matrix.dtype() == DType::bytes)
    fail(Errc::invalid_argument,
         fmt::format("{} holds bytes; linear algebra takes float32, float64, complex64 and "
                     "complex128",
                     name));
  const bool has_elements = matrix.rows() > 0 && matrix.cols() > 0;
  if (has_elements && !matrix.source() && !matrix.view().data)
    fail(Errc::invalid_argument, fmt::format("{} has elements, and its address is null", name));
}

void check_output(std::string_view name, const MatrixView& view) {
  check_matrix(name, view);
  const std::int64_t down = std::abs(view.row_stride);
  const std::int64_t right = std::abs(view.col_stride);
  // The fewest steps down that come to the same place as steps to the right: right / common.
  const std::int64_t common = std::max<std::int64_t>(1, std::gcd(down, right));
  const bool apart = view.rows <= 1   ? view.cols <= 1 || right > 0
                     : view.cols <= 1 ? down > 0
                                      : right / common >= view.rows || down / common >= view.cols;
  if (!empty(view) && !apart)
    fail(Errc::invalid_argument,
         fmt::format("{} is written, and its strides {} and {} map several elements to one address",
                     name, view.row_stride, view.col_stride));
}

void check_square(std::string_view name, const Matrix& matrix) {
  if (matrix.rows() != matrix.cols())
    fail(Errc::invalid_argument, fmt::format("{} is {}; expected a square matrix", name,
                                             shape_of(matrix.rows(), matrix.cols())));
}

void check_types(std::string_view a_name, DType a, std::string_view b_name, DType b) {
  if (a != b)
    fail(Errc::invalid_argument, fmt::format("{} is {} and {} is {}; expected the same type",
                                             a_name, quadriga::name(a), b_name, quadriga::name(b)));
}

void check_no_overlap(std::string_view a_name, const Matrix& a, std::string_view b_name,
                      const MatrixView& b) {
  if (!a.source() && overlap(a.view(), b))
    fail(Errc::invalid_argument,
         fmt::format("{} shares memory with {}, which is written", a_name, b_name));
}

void check_options(const Options& options) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  if (options.tile < 0 || options.tile > most)
    fail(Errc::invalid_argument,
         fmt::format("the tile size is {}; expected 1 to {}, or 0 to choose one", options.tile,
                     most));
}

bool allow_tf32(const Options& options, DType dtype) {
  const bool is_single = dtype == DType::float32 || dtype == DType::complex64;
  return is_single && Config::global().flag("allow_tf32", options.allow_tf32);
}

bool reproducible(const Engine& engine, const Options& options) {
  const std::optional<bool>& of_engine = engine.options().reproducible;
  return Config::global().flag("reproducible",
                               options.reproducible ? options.reproducible : of_engine);
}

bool divides(const Engine& engine, const Options& options) {
  return Config::global().flag("divide") && !reproducible(engine, options);
}

void check_finite(Engine& engine, const Options& options, std::string_view name,
                  const Matrix& matrix) {
  const bool pretends = engine.options().virtual_clock && !engine.options().compute;
  if (!options.check_finite || matrix.source() || pretends) return;
  if (!finite_anywhere(engine, matrix.view()))
    fail(Errc::invalid_argument,
         fmt::format("{} contains infinities or NaNs; expected finite elements", name));
}

void check_room(const Engine& engine, std::string_view name, std::int64_t order, DType dtype) {
  const double needed = static_cast<double>(order) * static_cast<double>(order + 1) / 2 *
                        static_cast<double>(size_of(dtype));
  const EngineOptions& options = engine.options();
  const auto buffers = static_cast<double>(options.host_memory);
  double devices = 0, files = 0;
  for (const Device& device : engine.machine().devices)
    (properties_of(device.kind).only_stores ? files : devices) +=
        static_cast<double>(device.memory_bytes);
  if (needed <= devices + buffers + files) return;
  const bool is_file = engine.host_only() && !options.spill.empty();
  fail(Errc::too_large,
       fmt::format(
           "{} needs {}; there is room for {} on devices and {} {}{} (host_memory, spill)", name,
           format_bytes(needed), format_bytes(devices), format_bytes(buffers),
           is_file ? "in the spill file" : "in host buffers",
           files > 0 ? fmt::format(", and for {} in the spill file", format_bytes(files)) : ""));
}

}  // namespace quadriga::linalg
