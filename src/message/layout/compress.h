// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/compress.h: finds the canonical form of a list of runs.
#pragma once

#include <vector>

#include "message/layout/form.h"

namespace quadriga::message {

/// Adds a run, or lengthens the last one if it touches.
void add_run(std::vector<ByteRun>& runs, ByteRun run);

/// The form at least twice, as one more stride or as part of the outermost one.
Canonical wrapped(Canonical form, std::int64_t count, std::int64_t stride);

/// The canonical form of runs that aren't empty and don't touch their successors.
///
/// The first that applies: nested strides of equal runs; an even change of length; repetitions of
/// the shortest block, whose form is found in turn; the list itself.
/// Cost:    linear in the runs at each of at most log2(runs) levels.
Canonical compressed(std::vector<ByteRun> runs);

}  // namespace quadriga::message
