// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/levels.cpp: levels by their plans, and the order of their steps.
#include "sparse/levels.h"

#include <utility>

namespace quadriga::sparse {

Levels::Levels(std::vector<Level> levels, std::span<const PartPlan> finest)
    : levels_(std::move(levels)) {
  const auto plans = [](const std::unique_ptr<LevelMatrix>& matrix) {
    return matrix ? matrix->plans() : std::span<const PartPlan>{};
  };
  for (const Level& each : levels_)
    plan_.levels.push_back({each.matrix ? each.matrix->plans() : finest, plans(each.restriction),
                            plans(each.prolongation)});
  order();
}

void Levels::set_steps(std::vector<SmoothingStep> steps) {
  levels_.front().steps = std::move(steps);
  order();
}

void Levels::order() {
  std::vector<std::vector<SmoothingStep>> steps;
  for (const Level& each : levels_) steps.push_back(each.steps);
  plan_.first = first_of(steps.front());
  plan_.tasks = cycle_of(steps);
  ++plan_.generation;
}

}  // namespace quadriga::sparse
