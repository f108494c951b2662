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

// Where the others find the first rank's file.
struct File {
  int process = 0;
  int descriptor = -1;
};

// It can't shrink under those who map it.
constexpr int needed_seals = F_SEAL_SHRINK | F_SEAL_GROW;

int create(std::size_t bytes) noexcept {
  const int made = memfd_create("quadriga-mpi", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return -1;
  if (ftruncate(made, static_cast<off_t>(bytes)) == 0 &&
      fcntl(made, F_ADD_SEALS, needed_seals | F_SEAL_SEAL) == 0)
    return made;
  close(made);
  return -1;
}

int open(const File& file) noexcept {
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

std::unique_ptr<ProbedSends> ProbedSends::share(MPI_Comm comm) {
  static_assert(std::atomic<State>::is_always_lock_free);
  int own = 0, size = 0;
  PMPI_Comm_rank(comm, &own);
  PMPI_Comm_size(comm, &size);
  const std::size_t bytes = sizeof(Rank) * static_cast<std::size_t>(size);
  File file;
  if (own == 0) file = {getpid(), create(bytes)};
  PMPI_Bcast(&file, sizeof file, MPI_BYTE, 0, comm);
  const int descriptor = own == 0 ? file.descriptor : open(file);
  void* const at = descriptor < 0 ? nullptr : mapped(descriptor, bytes);
  // A new file is all zeros, which is what its atomic words begin with.
  std::unique_ptr<ProbedSends> made;
  if (at != nullptr) made.reset(new (std::nothrow) ProbedSends(static_cast<Rank*>(at), size, own));
  int mine = made ? 1 : 0, all = 0;
  PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
  if (descriptor >= 0) close(descriptor);
  if (all == 0) made.reset();
  return made;
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
