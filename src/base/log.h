// SPDX-License-Identifier: BSD-3-Clause
// src/base/log.h: leveled messages to a configurable sink, through which Python's logging gets
// them.
#pragma once

#include <functional>
#include <string_view>

namespace quadriga {

enum class LogLevel { debug, info, warning, error, off };

std::string_view name(LogLevel level) noexcept;

/// Reads "debug", "info", "warning", "error" or "off", in any case. Errors: invalid_argument naming
/// them.
LogLevel parse_log_level(std::string_view text);

/// Receives a message. May be called from any thread, also from several at once; may throw.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

/// Sends messages to `sink` from now on; an empty sink brings back the default, standard error.
///
/// A call that runs in another thread may still use the old sink when this returns.
void set_log_sink(LogSink sink);

/// Messages below this level are dropped; at first: warning.
void set_log_level(LogLevel level) noexcept;
LogLevel log_level() noexcept;

/// Whether a message of this level is wanted; ask before an expensive one is put together.
bool log_enabled(LogLevel level) noexcept;

/// Sends a message. What the sink throws is dropped, so that this is safe in workers
/// and destructors.
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace quadriga
