// SPDX-License-Identifier: BSD-3-Clause
// python/src/source.cpp: matrices as inputs and outputs, sources in Python, covariances.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "body.h"
#include "linalg/view.h"
#include "py_linalg.h"

namespace quadriga::python {
namespace {

using linalg::Matrix;
using linalg::MatrixView;
using ReadCallable = nb::typed<nb::callable, void(std::int64_t, std::int64_t, std::uintptr_t,
                                                  std::int64_t, std::int64_t, std::int64_t)>;

/// Calls read(row, col, address, rows, cols, ld) with the GIL, on the engine's one host thread.
class PythonSource final : public linalg::Source {
 public:
  PythonSource(const nb::callable& read, long long number)
      : read_(nb::object(read).release().ptr()), number_(number) {
    host_only = true;
  }
  ~PythonSource() override {
    const GilHere gil;
    if (gil) Py_DECREF(read_);
  }
  PythonSource(const PythonSource&) = delete;
  PythonSource& operator=(const PythonSource&) = delete;

  void read(std::int64_t row, std::int64_t col, const View& out) const override {
    const InsideBody inside(number_);
    try {
      nb::borrow<nb::object>(read_)(row, col, reinterpret_cast<std::uintptr_t>(out.data), out.rows,
                                    out.cols, out.ld);
    } catch (nb::python_error& error) {
      throw BodyFailure(number_, describe(error));
    }
  }

 private:
  PyObject* read_;
  long long number_;
};

Matrix view_of(std::uintptr_t address, std::int64_t rows, std::int64_t cols,
               std::int64_t row_stride, std::int64_t col_stride, DType dtype,
               std::optional<DeviceId> device) {
  return Matrix(MatrixView{reinterpret_cast<void*>(address), rows, cols, row_stride, col_stride,
                           dtype, device.value_or(no_device)});
}

std::span<const double> numbers(std::uintptr_t address, std::size_t count) {
  return {reinterpret_cast<const double*>(address), count};
}

/// Points are rows of float64, one after the other, at an address; no second set: with itself.
Matrix covariance(int kind, double variance, double nugget, std::vector<double> length_scale,
                  DType dtype, int dimensions, std::uintptr_t row_points, std::size_t row_count,
                  std::uintptr_t col_points, std::size_t col_count) {
  linalg::CovarianceOptions options;
  options.kind = static_cast<linalg::CovarianceKind>(kind);
  options.variance = variance;
  options.nugget = nugget;
  options.length_scale = std::move(length_scale);
  options.dtype = dtype;
  const auto dims = static_cast<std::size_t>(dimensions);
  const auto rows = numbers(row_points, row_count * dims);
  if (col_points == 0) return Matrix(linalg::covariance(options, rows, dimensions));
  return Matrix(
      linalg::covariance(options, rows, numbers(col_points, col_count * dims), dimensions));
}

void read_source(const Matrix& matrix, std::int64_t row, std::int64_t col, std::uintptr_t address,
                 std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  require(matrix.source() != nullptr, "this matrix is memory, not a source");
  const GilReleased released;
  matrix.source()->read(row, col,
                        {reinterpret_cast<void*>(address), rows, cols, ld, matrix.dtype()});
}

bool is_strided(const Matrix& matrix) {
  return matrix.source() == nullptr &&
         linalg::layout_of(matrix.view()) == linalg::ViewKind::strided;
}

}  // namespace

std::shared_ptr<linalg::Source> python_source(std::int64_t rows, std::int64_t cols, DType dtype,
                                              bool hermitian, const nb::callable& read,
                                              long long number) {
  auto source = std::make_shared<PythonSource>(read, number);
  source->rows = rows;
  source->cols = cols;
  source->dtype = dtype;
  source->hermitian = hermitian;
  return source;
}

void bind_matrix(nb::module_& module) {
  nb::class_<Matrix>(module, "Matrix", "A matrix in memory, or a source of its elements.")
      .def_static("view", view_of, nb::arg("address"), nb::arg("rows"), nb::arg("cols"),
                  nb::arg("row_stride"), nb::arg("col_stride"), nb::arg("dtype"),
                  nb::arg("device") = nb::none())
      .def_static(
          "source",
          [](std::int64_t rows, std::int64_t cols, DType dtype, bool hermitian,
             const ReadCallable& read, long long number) {
            return Matrix(python_source(rows, cols, dtype, hermitian, read, number));
          },
          nb::arg("rows"), nb::arg("cols"), nb::arg("dtype"), nb::arg("hermitian"), nb::arg("read"),
          nb::arg("number"))
      .def_static("covariance", covariance, nb::arg("kind"), nb::arg("variance"), nb::arg("nugget"),
                  nb::arg("length_scale"), nb::arg("dtype"), nb::arg("dimensions"),
                  nb::arg("row_points"), nb::arg("row_count"), nb::arg("col_points"),
                  nb::arg("col_count"))
      .def("is_strided", is_strided, "Whether neither its columns nor its rows are contiguous.")
      .def("read", read_source, nb::arg("row"), nb::arg("col"), nb::arg("address"), nb::arg("rows"),
           nb::arg("cols"), nb::arg("ld"));
}

}  // namespace quadriga::python
