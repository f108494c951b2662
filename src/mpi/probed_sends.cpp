// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/probed_sends.cpp: slots of synchronous sends in a memory file of the first rank.
#include "mpi/probed_sends.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <new>

namespace quadriga::mpi {
namespace {

// It can't shrink under those who map it.
constexpr int needed_seals = F_SEAL_SHRINK | F_SEAL_GROW;

int file_of(std::size_t bytes) noexcept {
  const int made = memfd_create("quadriga-mpi", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return -1;
  if (ftruncate(made, static_cast<off_t>(bytes)) == 0 &&
      fcntl(made, F_ADD_SEALS, needed_seals | F_SEAL_SEAL) == 0)
    return made;
  ::close(made);
  return -1;
}

int opened(const ProbedSends::File& file) noexcept {
  if (file.descriptor < 0) return -1;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", file.process, file.descriptor);
  return ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

// Null if it isn't what create() makes, whatever the first rank says.
void* mapped(int descriptor, std::size_t bytes) noexcept {
  struct stat found {};
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & needed_seals) != needed_seals || fstat(descriptor, &found) != 0 ||
      static_cast<std::size_t>(found.st_size) != bytes)
    return nullptr;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

ProbedSends::File ProbedSends::create(int ranks) noexcept {
  return {getpid(), file_of(sizeof(Rank) * static_cast<std::size_t>(ranks))};
}

void ProbedSends::close(const File& file) noexcept {
  if (file.descriptor >= 0) ::close(file.descriptor);
}

std::unique_ptr<ProbedSends> ProbedSends::open(const File& file, int own, int ranks) noexcept {
  static_assert(std::atomic<State>::is_always_lock_free);
  const int descriptor = opened(file);
  if (descriptor < 0) return nullptr;
  void* const at = mapped(descriptor, sizeof(Rank) * static_cast<std::size_t>(ranks));
  ::close(descriptor);
  if (at == nullptr) return nullptr;
  // A new file is all zeros, which is what its atomic words begin with.
  return std::unique_ptr<ProbedSends>(new (std::nothrow)
                                          ProbedSends(static_cast<Rank*>(at), ranks, own));
}

ProbedSends::~ProbedSends() { munmap(ranks_, sizeof(Rank) * static_cast<std::size_t>(size_)); }

ProbedSends::Slot ProbedSends::take() noexcept {
  for (int tried = 0; tried < slots_per_rank; ++tried) {
    const unsigned slot = next_.fetch_add(1, std::memory_order_relaxed) % slots_per_rank;
    State expected = State::free;
    if (ranks_[own_].slots[slot].compare_exchange_strong(expected, State::taken))
      return {this, static_cast<int>(slot)};
  }
  return {};
}

void ProbedSends::give_back(int slot) noexcept { ranks_[own_].slots[slot].store(State::free); }

bool ProbedSends::is_waiting(int slot, int receiver) const noexcept {
  // In this order: see invariant 2.
  return ranks_[receiver].opening.load() != 0 || ranks_[own_].slots[slot].load() == State::held;
}

void ProbedSends::Opening::add(int by) noexcept {
  if (probed_ != nullptr)
    probed_->ranks_[probed_->own_].opening.fetch_add(static_cast<std::uint32_t>(by));
}

void ProbedSends::set(int sender, int slot, State state) noexcept {
  if (sender >= 0 && sender < size_ && slot >= 0 && slot < slots_per_rank)
    ranks_[sender].slots[slot].store(state);
}

}  // namespace quadriga::mpi
