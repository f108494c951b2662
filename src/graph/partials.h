// SPDX-License-Identifier: BSD-3-Clause
// src/graph/partials.h: the partial results of one datum that tasks of mode reduce add to.
#pragma once

#include <memory>
#include <vector>

#include "graph/task.h"

namespace quadriga {

/// A set of partial results of one datum.
struct Reduction {
  std::vector<std::unique_ptr<Datum>> partials;  ///< By place; null: in place.
  // The group that is open.
  const Codelet* init = nullptr;
  const Codelet* combine = nullptr;  ///< Null: none is open.
  std::int32_t priority = 0;         ///< The largest of a member.
};

}  // namespace quadriga
