// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/guard.cpp: page protection and the handler for what it catches.
//
// 1. `active` belongs to the thread that runs a variant; the handler, which runs on the thread that
//    faulted, reads it and nothing else of ours.
// 2. The handler is installed once and passes on every fault that isn't a guarded one.
#include "device/emulated/guard.h"

#include <csetjmp>
#include <csignal>

#include <fmt/format.h>
#include <quadriga/error.h>

namespace quadriga {
namespace {

struct GuardedCall {
  std::span<EmulatedMemory> memories;
  sigjmp_buf left;
  const void* touched = nullptr;
};

thread_local GuardedCall* active = nullptr;
struct sigaction previous;

bool is_guarded(const void* address) {
  if (active == nullptr) return false;
  for (const EmulatedMemory& memory : active->memories) {
    if (memory.contains(address)) return true;
  }
  return false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    // The access is repeated on return, and then ends the process as if we weren't here.
    ::sigaction(signal, &previous, nullptr);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (!is_guarded(info->si_addr)) {
    pass_on(signal, info, context);
    return;
  }
  active->touched = info->si_addr;
  siglongjmp(active->left, 1);
}

void install() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    return ::sigaction(SIGSEGV, &action, &previous) == 0;
  }();
  if (!installed) fail(Errc::internal, "can't install a handler for SIGSEGV");
}

std::size_t extent_bytes(const View& view) {
  if (view.rows <= 0 || view.cols <= 0) return 0;
  return static_cast<std::size_t>((view.cols - 1) * view.ld + view.rows) * size_of(view.dtype);
}

void open_operands(const Launch& launch, std::span<EmulatedMemory> memories) {
  for (const View& view : launch.arguments.operands) {
    for (EmulatedMemory& memory : memories) {
      if (memory.contains(view.data)) memory.open(view.as<std::byte>(), extent_bytes(view));
    }
  }
  const std::span<std::byte> workspace = launch.arguments.workspace;
  for (EmulatedMemory& memory : memories)
    if (memory.contains(workspace.data())) memory.open(workspace.data(), workspace.size());
}

// Opens everything again, however the variant ended.
class Closed {
 public:
  explicit Closed(std::span<EmulatedMemory> memories) : memories_(memories) {
    for (EmulatedMemory& memory : memories_) memory.close();
  }
  ~Closed() {
    for (EmulatedMemory& memory : memories_) memory.open();
  }
  Closed(const Closed&) = delete;
  Closed& operator=(const Closed&) = delete;

 private:
  std::span<EmulatedMemory> memories_;
};

// Kept out of line: it alone is left by siglongjmp, and nothing in it needs to be destroyed.
[[gnu::noinline]] bool ran_to_its_end(const Launch& launch, GuardedCall& guarded) {
  if (sigsetjmp(guarded.left, 1) != 0) return false;
  (*launch.kernel)(launch.arguments);
  return true;
}

[[noreturn]] void refuse(const Launch& launch, const GuardedCall& guarded) {
  for (std::size_t i = 0; i < guarded.memories.size(); ++i) {
    if (!guarded.memories[i].contains(guarded.touched)) continue;
    fail(Errc::task_failed,
         fmt::format(
             "codelet '{}' accessed memory outside its operands: memory space {} at offset {}",
             launch.name, i + 1,
             static_cast<const std::byte*>(guarded.touched) - guarded.memories[i].base()));
  }
  fail(Errc::internal, "a guarded fault outside of all memory");
}

class Active {
 public:
  explicit Active(GuardedCall& guarded) { active = &guarded; }
  ~Active() { active = nullptr; }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;
};

}  // namespace

void run_guarded(const Launch& launch, std::span<EmulatedMemory> memories) {
  install();
  GuardedCall guarded{memories, {}, nullptr};
  bool ended = false;
  {
    const Closed closed(memories);
    open_operands(launch, memories);
    const Active running(guarded);
    ended = ran_to_its_end(launch, guarded);
  }
  if (!ended) refuse(launch, guarded);
}

}  // namespace quadriga
