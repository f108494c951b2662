// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/operand_guard.cpp: the memory of views, as regions that the engine can look up.
#include "linalg/operand_guard.h"

#include <algorithm>
#include <vector>

#include "engine/on_host.h"
#include "engine/others.h"
#include "linalg/view.h"

namespace quadriga::linalg {
namespace {

/// Exact for contiguous columns or rows; else from the first byte to the last.
Region region_of(const MatrixView& view) {
  const std::size_t item = size_of(view.dtype);
  const ViewKind layout = layout_of(view);
  if (layout != ViewKind::strided) {
    const MatrixView stored = layout == ViewKind::rows ? view.transposed() : view;
    return {reinterpret_cast<std::uintptr_t>(stored.data),
            static_cast<std::size_t>(stored.rows) * item, static_cast<std::size_t>(stored.cols),
            static_cast<std::size_t>(leading_dimension(stored)) * item};
  }
  const std::byte* first = at(view, 0, 0);
  const std::byte* last = first;
  for (const std::byte* corner : {at(view, view.rows - 1, 0), at(view, 0, view.cols - 1),
                                  at(view, view.rows - 1, view.cols - 1)}) {
    first = std::min(first, corner);
    last = std::max(last, corner);
  }
  return {reinterpret_cast<std::uintptr_t>(first), static_cast<std::size_t>(last - first) + item, 1,
          0};
}

}  // namespace

HostAccess guard(Engine& engine, std::initializer_list<Guarded> operands) {
  std::vector<HeldRegion> regions;
  for (const Guarded& each : operands)
    if (const MatrixView& view = each.matrix->view();
        !each.matrix->source() && view.data && view.rows > 0 && view.cols > 0)
      regions.push_back({region_of(each.matrix->view()), each.access});
  follow_others(engine, regions);
  return hold_regions(engine, regions);
}

}  // namespace quadriga::linalg
