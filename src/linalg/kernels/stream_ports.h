// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/stream_ports.h: which kinds of devices run the tile kernels' variants for
// streams.
//
// A kind's port is a StreamBlas (stream_blas.h) in its own folder, and a line of a table: CUDA's
// comes with the build (cuda_variants.h), others are added by whoever adds the kind
// (device/kinds.h). The rows of kernel_table.cpp know no kind.
#pragma once

#include "linalg/kernels/kernel_spec.h"

#include <functional>
#include <utility>
#include <vector>

namespace quadriga::kernels {

/// Makes the variant of a kernel for a type on streams of one kind of devices: it calls the row's
/// variant for streams with a StreamBlas of the stream that it gets. Empty: that kind has none.
using StreamPort = std::function<Kernel(const KernelSpec& spec, DType type)>;

/// Devices of the kind run the tile kernels from then on. Any thread.
/// Errors: invalid_argument if the kind runs variants of another one, if it has a port, or if a
/// codelet of a tile kernel was asked for before: others may read it.
void add_stream_port(DeviceKind kind, StreamPort port);
/// Those that were added. None can be added any more. Any thread.
const std::vector<std::pair<DeviceKind, StreamPort>>& added_stream_ports();

}  // namespace quadriga::kernels
