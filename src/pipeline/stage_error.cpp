// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stage_error.cpp: what failed where, with its cause nested.
#include "pipeline/stage_error.h"

#include <quadriga/error.h>

namespace quadriga {

void raise_stage_error(const ChunkFailure& failure) {
  const std::string where =
      "stage '" + failure.stage + "' failed at chunk " + failure.chunk.text() + ": ";
  try {
    std::rethrow_exception(failure.error);
  } catch (const Error& error) {
    std::throw_with_nested(Error(error.code(), where + error.what()));
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(Errc::task_failed, where + error.what()));
  } catch (...) {
    std::throw_with_nested(Error(Errc::task_failed, where + "it threw no std::exception"));
  }
}

}  // namespace quadriga
