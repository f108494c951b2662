// SPDX-License-Identifier: BSD-3-Clause
// src/engine/c_engine.cpp: engine_c.h; errors as numbers.
#include "engine/c_engine.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/c_message.h"

namespace quadriga {

std::int64_t c_guarded(const std::function<std::int64_t()>& call) noexcept try {
  return call();
} catch (const WrongArgument& wrong) {
  return c_failed(-wrong.argument, wrong.what);
} catch (const Error& error) {
  return c_failed(c_failure_of(error.code()), error.what());
} catch (const std::exception& error) {
  return c_failed(QUADRIGA_OTHER, error.what());
} catch (...) {
  return c_failed(QUADRIGA_OTHER, "what was thrown is no std::exception");
}

void refuse(int argument, const std::string& what) {
  std::string text = "argument " + std::to_string(argument) + ": ";
  for (const char each : what) each ? text += each : text += "\\0";  // it would end the message
  throw WrongArgument{argument, text};
}

DType dtype_of(int argument, char letter, std::string_view letters) {
  const char small =
      letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  const std::size_t at = letters.find(small);
  if (at == std::string_view::npos)
    refuse(argument,
           fmt::format("type is '{}'; expected one of {}", letter, fmt::join(letters, ", ")));
  return static_cast<DType>(at);
}

Engine& opened(quadriga_engine* engine) {
  if (!engine) refuse(1, "the engine is NULL; expected one that quadriga_open made");
  return engine->engine;
}

}  // namespace quadriga

extern "C" {

int64_t quadriga_open(const char* devices, quadriga_engine** engine) {
  return quadriga::c_guarded([&]() -> std::int64_t {
    if (!engine) quadriga::refuse(2, "the address for the engine is NULL");
    *engine = nullptr;
    quadriga::EngineOptions options;
    if (devices) options.devices = devices;
    try {
      *engine = new quadriga_engine{quadriga::Engine(std::move(options))};
    } catch (const quadriga::Error& error) {
      if (error.code() == quadriga::Errc::invalid_argument) quadriga::refuse(1, error.what());
      throw;
    }
    return 0;
  });
}

void quadriga_close(quadriga_engine* engine) { delete engine; }

}  // extern "C"
