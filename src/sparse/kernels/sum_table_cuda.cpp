// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/sum_table_cuda.cpp: sums of all parts by their addresses.
#include "sparse/kernels/sum_table_cuda.h"

#include <fmt/format.h>
#include <quadriga/error.h>

namespace quadriga::sparse {

cuda::SumTable sum_table(const Arguments& a, std::size_t first,
                         const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  cuda::SumTable table;
  require(blocks.size() <= cuda::SumTable::most_parts,
          fmt::format("a matrix in {} parts; expected at most {} on GPUs", blocks.size(),
                      cuda::SumTable::most_parts));
  table.parts = static_cast<int>(blocks.size());
  table.columns = static_cast<int>(columns);
  for (std::size_t part = 0; part < blocks.size(); ++part) {
    table.blocks_before[part + 1] = table.blocks_before[part] + blocks[part];
    table.sums[part] = a.operands[first + part].as<const double>();
  }
  return table;
}

}  // namespace quadriga::sparse
