// SPDX-License-Identifier: BSD-3-Clause
// src/base/mapped_files.cpp: the slots and the handler that looks through them.
#include "base/mapped_files.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
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

/// Of a mapping whose truncation is told; free while `begin` is null.
struct Noted {
  std::atomic<char*> begin{nullptr};
  std::size_t bytes = 0;
  std::atomic<bool> is_truncated{false};
};

std::mutex writing;
std::array<Slot, most> mappings;
std::array<Slot, most> partials;  // Of these `begin` is the slot itself.
std::array<Noted, 1024> noted;
std::atomic<std::size_t> noted_end{0};  // behind the last slot that was ever taken
std::atomic<int> truncated{0};          // slots
struct sigaction before {};
std::atomic_flag met = ATOMIC_FLAG_INIT;  // A fault: threads may meet several at once.

/// From the page of a fault to the mapping's end there are zeros from now on. False if the system
/// refuses that.
bool replace(Noted& slot, char* begin, char* address) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(address) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(begin) + slot.bytes;
  if (!slot.is_truncated.exchange(true)) truncated.fetch_add(1);
  return ::mmap(reinterpret_cast<void*>(first), end - first, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

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
  auto* const at = static_cast<char*>(info->si_addr);
  for (std::size_t i = 0; i < noted_end.load(std::memory_order_acquire); ++i) {
    char* const begin = noted[i].begin.load(std::memory_order_acquire);
    if (begin != nullptr && at >= begin && at < begin + noted[i].bytes &&
        replace(noted[i], begin, at))
      return;
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

void note_truncation(const void* begin, std::size_t bytes) {
  const std::lock_guard lock(writing);
  install();
  const auto found =
      std::ranges::find_if(noted, [](const Noted& slot) { return slot.begin.load() == nullptr; });
  if (found == noted.end()) return;
  found->bytes = bytes;
  found->begin.store(static_cast<char*>(const_cast<void*>(begin)), std::memory_order_release);
  const auto end = static_cast<std::size_t>(found - noted.begin()) + 1;
  if (end > noted_end.load()) noted_end.store(end, std::memory_order_release);
}

std::vector<const void*> truncated_mappings() {
  if (truncated.load() == 0) return {};
  const std::lock_guard lock(writing);
  std::vector<const void*> found;
  for (const Noted& slot : noted)
    if (slot.begin.load() != nullptr && slot.is_truncated.load())
      found.push_back(slot.begin.load());
  return found;
}

void forget_mapping(const void* begin) noexcept {
  const std::lock_guard lock(writing);
  for (Noted& slot : noted) {
    if (slot.begin.load() != begin || begin == nullptr) continue;
    slot.begin.store(nullptr);
    if (slot.is_truncated.exchange(false)) truncated.fetch_sub(1);
  }
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
