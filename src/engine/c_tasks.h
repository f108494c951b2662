// SPDX-License-Identifier: BSD-3-Clause
// src/engine/c_tasks.h: what task_c.h hands out, and how its options are read.
#pragma once

#include <quadriga/engine.h>
#include <quadriga/task_c.h>

#include <vector>

struct quadriga_data {
  quadriga::Engine* engine;
  quadriga::Data data;
};
struct quadriga_sequence {
  quadriga::Engine* engine;
  quadriga::Sequence sequence;
};
struct quadriga_codelet {
  quadriga::Codelet codelet;
};

namespace quadriga {

/// SubmitOptions from those of C; `after` holds what they refer to.
/// Errors: invalid_argument naming the option, its value and what was expected.
SubmitOptions options_of(const quadriga_submit_options& given, const Engine& engine,
                         std::vector<Future>& after);

}  // namespace quadriga
