// SPDX-License-Identifier: BSD-3-Clause
// src/engine/named_call.h: names a call of a front end in the trace, while it lasts.
#pragma once

#include <string>
#include <utility>

#include "engine/engine_access.h"

namespace quadriga {

/// Made when a call begins; costs nothing without a trace. The engine must outlive it.
class NamedCall {
 public:
  NamedCall(Engine& engine, const char* name)
      : engine_(engine.options().trace ? &engine : nullptr),
        name_(name),
        begin_(engine_ ? engine.now() : 0) {}
  NamedCall(const NamedCall&) = delete;
  NamedCall& operator=(const NamedCall&) = delete;
  ~NamedCall() {
    if (!engine_) return;
    try {
      EngineAccess::section(*engine_, name_, begin_, engine_->now());
    } catch (...) {
      // A trace without the name is better than a call that fails for want of memory.
    }
  }

 private:
  Engine* const engine_;
  const char* const name_;
  const Nanoseconds begin_;
};

}  // namespace quadriga
