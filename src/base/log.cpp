// SPDX-License-Identifier: BSD-3-Clause
// src/base/log.cpp: the level and the sink of messages.
//
// Invariants:
// 1. `current` is read and replaced only under `mutex`; the sink it points to never changes.
// 2. The sink is called without the mutex: it may wait for Python's GIL, or log itself.
// 3. The state is never destroyed, so that threads that outlive main() may log.
#include "base/log.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace quadriga {
namespace {

constexpr std::array<std::string_view, 5> level_names{"debug", "info", "warning", "error", "off"};

struct LogState {
  std::mutex mutex;
  std::shared_ptr<const LogSink> current;
  std::atomic<LogLevel> least{LogLevel::warning};
};

LogState& state() {
  static LogState* const instance = new LogState;
  return *instance;
}

std::shared_ptr<const LogSink> current_sink() {
  const std::lock_guard lock(state().mutex);
  return state().current;
}

void write_to_stderr(LogLevel level, std::string_view message) {
  const std::string line = fmt::format("quadriga: {}: {}\n", name(level), message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

std::string_view name(LogLevel level) noexcept {
  return level_names[static_cast<std::size_t>(level)];
}

LogLevel parse_log_level(std::string_view text) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == b; };
  for (std::size_t i = 0; i < level_names.size(); ++i)
    if (std::ranges::equal(text, level_names[i], same)) return static_cast<LogLevel>(i);
  fail(Errc::invalid_argument,
       fmt::format("'{}' is not a log level; expected {}", text, fmt::join(level_names, ", ")));
}

void set_log_sink(LogSink sink) {
  auto next = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(state().mutex);
  state().current.swap(next);
}

void set_log_level(LogLevel level) noexcept {
  state().least.store(level, std::memory_order_relaxed);
}

LogLevel log_level() noexcept { return state().least.load(std::memory_order_relaxed); }

bool log_enabled(LogLevel level) noexcept { return level >= log_level() && level != LogLevel::off; }

void log(LogLevel level, std::string_view message) noexcept {
  if (!log_enabled(level)) return;
  try {
    const auto sink = current_sink();
    if (sink)
      (*sink)(level, message);
    else
      write_to_stderr(level, message);
  } catch (...) {
    // A message that can't be delivered must not end the work that it tells about.
  }
}

}  // namespace quadriga
