// SPDX-License-Identifier: BSD-3-Clause
// src/engine/c_engine.h: what engine_c.h hands out, and how functions for C are called.
#pragma once

#include <quadriga/engine.h>
#include <quadriga/engine_c.h>

#include <functional>
#include <string>
#include <string_view>

struct quadriga_engine {
  quadriga::Engine engine;
};

namespace quadriga {

/// An argument that a caller got wrong, counted from 1 with the engine.
struct WrongArgument {
  int argument;
  std::string what;
};

/// Runs one call; no exception passes into C. Returns its number, or that of what it threw.
std::int64_t c_guarded(const std::function<std::int64_t()>& call) noexcept;

/// Throws a WrongArgument.
[[noreturn]] void refuse(int argument, const std::string& what);

/// The type that one of these letters stands for, in either case; "sdczb" are those of all types.
DType dtype_of(int argument, char letter, std::string_view letters);

/// The engine of a first argument.
Engine& opened(quadriga_engine* engine);

}  // namespace quadriga
