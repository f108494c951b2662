// SPDX-License-Identifier: BSD-3-Clause
// src/base/mapped_files.cpp: the slots and the handler that looks through them.
#include "base/mapped_files.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

namespace quadriga {
namespace {

constexpr std::size_t most = 32;
constexpr std::size_t longest = 4200;  // of a path, with a message around it

/// Free while `begin` is null.
struct Slot {
  std::atomic<const char*> begin{nullptr};
  std::size_t bytes = 0;
  std::array<char, longest> text{};

  void set(const void* address, std::size_t size, const std::string& content) {
    bytes = size;
    text.fill(0);
    std::copy_n(content.data(), std::min(content.size(), longest - 1), text.data());
    begin.store(static_cast<const char*>(address), std::memory_order_release);
  }
};

std::mutex writing;
std::array<Slot, most> mappings;
std::array<Slot, most> partials;  // Of these `begin` is the slot itself.
struct sigaction before {};
std::atomic_flag met = ATOMIC_FLAG_INIT;  // A fault: threads may meet several at once.

void on_fault(int, siginfo_t* info, void*) {
  const auto* const address = static_cast<const char*>(info->si_addr);
  for (const Slot& slot : mappings) {
    const char* const begin = slot.begin.load(std::memory_order_acquire);
    if (begin == nullptr || address < begin || address >= begin + slot.bytes) continue;
    while (met.test_and_set()) ::pause();  // the first one ends the process
    for (const Slot& partial : partials)
      if (partial.begin.load(std::memory_order_acquire)) ::unlink(partial.text.data());
    constexpr int failed = 1;
    const ssize_t said = ::write(STDERR_FILENO, slot.text.data(), std::strlen(slot.text.data()));
    static_cast<void>(said);  // who can't be told isn't
    ::_exit(failed);
  }
  ::sigaction(SIGBUS, &before, nullptr);  // the access is tried again, and faults there
}

void install() {
  static const bool done = [] {
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &ours, &before);
    return true;
  }();
  static_cast<void>(done);
}

Slot* free_slot(std::array<Slot, most>& slots) {
  const auto found =
      std::ranges::find_if(slots, [](const Slot& slot) { return slot.begin.load() == nullptr; });
  return found == slots.end() ? nullptr : &*found;
}

}  // namespace

void watch_mapping(const void* begin, std::size_t bytes, const std::string& file) {
  const std::lock_guard lock(writing);
  install();
  if (Slot* const slot = free_slot(mappings))
    slot->set(begin, bytes,
              fmt::format("quadriga: {}: the file became shorter while it was used, or its disk "
                          "failed; nothing is left half-written\n",
                          file));
}

void forget_mapping(const void* begin) noexcept {
  const std::lock_guard lock(writing);
  for (Slot& slot : mappings)
    if (slot.begin.load() == begin) slot.begin.store(nullptr);
}

void watch_partial(const std::string& path) {
  const std::lock_guard lock(writing);
  if (Slot* const slot = free_slot(partials)) slot->set(slot, 0, path);
}

void forget_partial(const std::string& path) noexcept {
  const std::lock_guard lock(writing);
  for (Slot& slot : partials)
    if (slot.begin.load() != nullptr && path == slot.text.data()) slot.begin.store(nullptr);
}

}  // namespace quadriga
