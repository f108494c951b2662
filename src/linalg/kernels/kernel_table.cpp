// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/kernel_table.cpp: the modules of tile kernels, a line each, and codelets made
// of their rows.
#include "device/kinds.h"
#include "linalg/kernels/blas_threads.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/cuda_variants.h"
#include "linalg/kernels/stream_ports.h"

#include <string>

namespace quadriga::kernels {

std::span<const KernelModule> kernel_table() {
  static constexpr KernelModule modules[] = {
      gemm_kernels, syrk_kernels, trsm_kernels, potrf_kernels, element_kernels,
  };
  return modules;
}

std::size_t type_index(DType type) {
  require(type <= DType::complex128,
          "linear algebra takes float32, float64, complex64 and complex128, not bytes");
  return static_cast<std::size_t>(type);
}

Family::Family(const KernelSpec& spec) {
  use_one_blas_thread();
  for (std::size_t i = 0; i < codelets_.size(); ++i) {
    Codelet& codelet = codelets_[i];
    codelet.name = "sdcz"[i] + std::string(spec.name);
    codelet.access = spec.access;
    codelet.cpu = [variant = spec.host[i]](const Arguments& arguments) {
      const BlasCall call;
      variant(arguments);
    };
    codelet.cuda = cuda_variant(spec, static_cast<DType>(i));
    for (const auto& [kind, port] : added_stream_ports())
      codelet.variant(kind) = port(spec, static_cast<DType>(i));
    codelet.cost = spec.cost;
    if (spec.workspace)
      codelet.workspace = [bytes = spec.workspace](const Arguments& arguments, DeviceKind kind) {
        return is_accelerator(kind) ? bytes(arguments) : 0;
      };
    if (spec.divide) set_division(codelet, spec.divide, Divided::always);
  }
}

}  // namespace quadriga::kernels
