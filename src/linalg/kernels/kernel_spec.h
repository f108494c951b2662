// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/kernel_spec.h: a tile kernel as one row of a table: operands, parameters,
// cost, variants and workspace.
//
// A kernel is one module: its header has what callers give and get, its .cpp file the row and all
// that the row names. To add one, write the module and add its line to kernel_table.cpp. Variants
// for streams call a device's libraries by StreamBlas, so they compile in each build.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/division.h>

#include <array>
#include <complex>
#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace quadriga::kernels {

template <class T>
class StreamBlas;

/// The names of one kernel in machines' tables, for the four types.
using Names = std::array<std::string_view, 4>;

/// Position of a type in a family; float32, float64, complex64, complex128 are 0 to 3.
std::size_t type_index(DType type);

template <class T>
using StreamVariant = void (*)(const Arguments&, StreamBlas<T>&);
using HostVariants = std::array<void (*)(const Arguments&), 4>;
using StreamVariants =
    std::tuple<StreamVariant<float>, StreamVariant<double>, StreamVariant<std::complex<float>>,
               StreamVariant<std::complex<double>>>;

struct KernelSpec {
  std::string_view name;       ///< That of its codelets behind the letter of their type.
  std::vector<Access> access;  ///< One mode for each operand.
  std::size_t params_bytes;    ///< Of the struct that submit() gets.
  Cost (*cost)(const Arguments&);
  HostVariants host;
  StreamVariants stream;
  const Codelet& (*codelet)(DType);
  /// Adds the fine tasks of a task that is divided (divisions.h); null if it never is.
  void (*divide)(const Arguments&, Division&) = nullptr;
  /// Bytes of a device's memory that the variants for streams need beside the operands; null: none.
  /// Emulated devices reserve as much, so that they and the virtual clock plan as GPUs do.
  std::size_t (*workspace)(const Arguments&) = nullptr;
};

/// The variants of a generic callable: body.operator()<T>(arguments).
template <class Body>
HostVariants on_host(Body) {
  return {[](const Arguments& a) { Body{}.template operator()<float>(a); },
          [](const Arguments& a) { Body{}.template operator()<double>(a); },
          [](const Arguments& a) { Body{}.template operator()<std::complex<float>>(a); },
          [](const Arguments& a) { Body{}.template operator()<std::complex<double>>(a); }};
}

/// The same of body.operator()<T>(arguments, stream).
template <class Body>
StreamVariants on_stream(Body) {
  return {[](const Arguments& a, StreamBlas<float>& on) { Body{}(a, on); },
          [](const Arguments& a, StreamBlas<double>& on) { Body{}(a, on); },
          [](const Arguments& a, StreamBlas<std::complex<float>>& on) { Body{}(a, on); },
          [](const Arguments& a, StreamBlas<std::complex<double>>& on) { Body{}(a, on); }};
}

/// The kernels of one module.
using KernelModule = std::span<const KernelSpec> (*)();

/// All modules of tile kernels.
std::span<const KernelModule> kernel_table();

}  // namespace quadriga::kernels
