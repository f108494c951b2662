// SPDX-License-Identifier: BSD-3-Clause
// src/engine/kept.h: what a room to the right keeps with an engine, as what calls have taught it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace quadriga {

class Engine;

/// One of each type, made when it is first asked for; all end with the engine. Any thread.
class Kept {
 public:
  template <class T>
  T& of() {
    return *static_cast<T*>(made_by([] { return std::shared_ptr<void>(std::make_shared<T>()); }));
  }

 private:
  using Make = std::shared_ptr<void> (*)();

  void* made_by(Make make) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, kept] : kept_)
      if (known == make) return kept.get();
    return kept_.emplace_back(make, make()).second.get();
  }

  std::mutex mutex_;
  std::vector<std::pair<Make, std::shared_ptr<void>>> kept_;  ///< Guarded by mutex_.
};

/// Errors: in a forked child.
Kept& kept_with(const Engine& engine);

}  // namespace quadriga
