// SPDX-License-Identifier: BSD-3-Clause
// bench/addresses.h: a range of addresses that no memory stands behind: a touch ends the program.
#pragma once

#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/mman.h>

#include <cstddef>

namespace quadriga::bench {

class Addresses {
 public:
  explicit Addresses(std::size_t bytes)
      : bytes_(bytes),
        memory_(
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED) fail(Errc::unavailable, fmt::format("no {} B of addresses", bytes));
  }
  ~Addresses() { munmap(memory_, bytes_); }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  void* get() const noexcept { return memory_; }

 private:
  std::size_t bytes_;
  void* memory_;
};

}  // namespace quadriga::bench
