// SPDX-License-Identifier: BSD-3-Clause
// bench/allocation_count.cpp: stands in front of the C library's allocator and counts.
//
// A program's own malloc takes the place of the library's for all that the program loads, so that
// operator new, containers and libraries are counted too. The work is still done by glibc, whose
// functions have second names. Sanitizers bring allocators of their own; there nothing is counted.
#include "allocation_count.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {
std::atomic<std::int64_t> calls{0};
}

namespace quadriga::bench {
std::int64_t allocation_count() noexcept { return calls.load(); }
}  // namespace quadriga::bench

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

#pragma GCC visibility push(default)

void* malloc(std::size_t bytes) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, std::size_t bytes) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}

#pragma GCC visibility pop
}
#endif
