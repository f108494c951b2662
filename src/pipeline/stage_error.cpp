// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stage_error.cpp: what failed where, with its cause nested.
#include "pipeline/stage_error.h"

#include <quadriga/error.h>

namespace quadriga {

void raise_stage_error(std::uint64_t chunk, const std::string& stage,
                       const std::exception_ptr& cause) {
  const std::string where = "stage '" + stage + "' failed at chunk " + std::to_string(chunk) + ": ";
  try {
    std::rethrow_exception(cause);
  } catch (const Error& error) {
    std::throw_with_nested(Error(error.code(), where + error.what()));
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(Errc::task_failed, where + error.what()));
  } catch (...) {
    std::throw_with_nested(Error(Errc::task_failed, where + "it threw no std::exception"));
  }
}

}  // namespace quadriga
