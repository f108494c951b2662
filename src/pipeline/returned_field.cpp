// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/returned_field.cpp: how large returned fields are presumed to be.
#include "pipeline/returned_field.h"

#include <quadriga/error.h>

#include <algorithm>
#include <cmath>

namespace quadriga {
namespace {

/// Of what the chunk has on the host; not zero.
double size_of_chunk(const Chunk& chunk) {
  return static_cast<double>(std::max<std::size_t>(1, chunk.bytes()));
}

}  // namespace

std::size_t ReturnedField::expected_bytes(const Chunk& chunk) const {
  if (most) return most(chunk);
  const double known = ratio_->load();
  return static_cast<std::size_t>(std::ceil((known < 0 ? 1.0 : known) * size_of_chunk(chunk)));
}

void ReturnedField::came(const Chunk& chunk, const View& view) const {
  const std::size_t bytes = bytes_of(view);
  if (most && bytes > most(chunk))
    fail(Errc::too_large, "field '" + name + "' of chunk " + chunk.id().text() + " has " +
                              std::to_string(bytes) + " bytes, and at most " +
                              std::to_string(most(chunk)) + " were stated");
  const double ratio = static_cast<double>(bytes) / size_of_chunk(chunk);
  ratio_->store(std::max(ratio_->load(), ratio));
}

}  // namespace quadriga
