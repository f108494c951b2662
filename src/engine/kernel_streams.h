// SPDX-License-Identifier: BSD-3-Clause
// src/engine/kernel_streams.h: makes the streams on which devices run kernels, with their lanes in
// the record.
#pragma once

#include <quadriga/machine.h>

#include <vector>

#include "engine/run_record.h"

namespace quadriga {

/// By device, at least one each: a core's own, or as many as the machine says. The first of an
/// accelerator takes the kernels that fill it; others pass these.
std::vector<std::vector<StreamId>> make_kernel_streams(Backend& backend, const Machine& machine,
                                                       RunRecord& record);

}  // namespace quadriga
