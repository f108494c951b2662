// SPDX-License-Identifier: BSD-3-Clause
// tests/fakes/nccl.cpp: a library with NCCL's functions, for processes of one host whose devices'
// memory is the host's: it copies and sums through a file that all its ranks map.
//
// What it queues on a stream waits there for the other ranks', as NCCL's kernels do, until all have
// come or the communicator is aborted. QUADRIGA_TEST_NCCL says what is wrong with a process's:
// version=N; no_start, late_start (fails, but not at once), never_starts; of collectives: hangs,
// broken (fails, but not at once), dies (with the process).
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int success = 0, system_error = 2, invalid = 4, in_progress = 7;
constexpr std::size_t most_ranks = 8, slot_bytes = std::size_t{32} << 10;

// In the file; new ones are all zero.
struct Shared {
  std::atomic<int> joined, finalized;
  std::atomic<int> arrived;
  std::atomic<std::uint32_t> turn;
  std::array<std::array<std::byte, slot_bytes>, most_ranks> slots;
};

struct Id {
  std::array<char, 128> path;
};

struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

using Launch = int (*)(void* stream, void (*function)(void*), void* data);
std::atomic<Launch> launch{nullptr};
std::atomic<int> made{0}, aborted{0}, destroyed{0}, called{0};

bool is_told(std::string_view what) {
  const char* const all = std::getenv("QUADRIGA_TEST_NCCL");
  return all != nullptr && std::string_view(all).find(what) != std::string_view::npos;
}

int version() {
  const char* const all = std::getenv("QUADRIGA_TEST_NCCL");
  const char* const at = all ? std::strstr(all, "version=") : nullptr;
  return at ? std::atoi(at + 8) : 22703;
}

}  // namespace

struct NcclOpaque {
  Shared* shared = nullptr;
  int ranks = 0, rank = 0;
  std::atomic<bool> is_aborted{false}, is_broken{false};
  std::atomic<int> looks{3};      // That say that a call goes on.
  std::atomic<bool> ends{false};  // It was finalized.
};

namespace {

using Handle = NcclOpaque*;

// Stays: streams may still call.
Handle keep(std::unique_ptr<NcclOpaque> handle) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<NcclOpaque>>;
  const std::lock_guard lock(mutex);
  return all->emplace_back(std::move(handle)).get();
}

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

// False if it was aborted meanwhile.
bool all_come(NcclOpaque& own) {
  const std::uint32_t turn = own.shared->turn;
  if (own.shared->arrived.fetch_add(1) + 1 == own.ranks) {
    own.shared->arrived = 0;
    ++own.shared->turn;
    return true;
  }
  while (own.shared->turn == turn) {
    if (own.is_aborted) return false;
    nap();
  }
  return true;
}

enum class Kind { broadcast, reduce, all_reduce, all_gather, reduce_scatter };

struct Operation {
  Handle own;
  Kind kind;
  const std::byte* from;
  std::byte* into;
  std::size_t count;  // As it was called with.
  int type, operation, root;
};

std::size_t bytes_of(int type) {
  constexpr std::array<std::size_t, 10> sizes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[static_cast<std::size_t>(type)];
}

template <class T>
void combine(std::byte* into, const std::byte* from, std::size_t bytes, int operation) {
  for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, into + i, sizeof a);
    std::memcpy(&b, from + i, sizeof b);
    if (operation == 0) a = static_cast<T>(a + b);
    if (operation == 1) a = static_cast<T>(a * b);
    if (operation == 2) a = std::max(a, b);
    if (operation == 3) a = std::min(a, b);
    std::memcpy(into + i, &a, sizeof a);
  }
}

void combine(std::byte* into, const std::byte* from, std::size_t bytes, int type, int operation) {
  switch (type) {
    case 0:
      return combine<std::int8_t>(into, from, bytes, operation);
    case 1:
      return combine<std::uint8_t>(into, from, bytes, operation);
    case 2:
      return combine<std::int32_t>(into, from, bytes, operation);
    case 3:
      return combine<std::uint32_t>(into, from, bytes, operation);
    case 4:
      return combine<std::int64_t>(into, from, bytes, operation);
    case 5:
      return combine<std::uint64_t>(into, from, bytes, operation);
    case 7:
      return combine<float>(into, from, bytes, operation);
    case 8:
      return combine<double>(into, from, bytes, operation);
    default:
      std::abort();
  }
}

// One slot of all ranks' input; false if it was aborted.
bool take_slot(const Operation& call, std::size_t at, std::size_t bytes, std::size_t part) {
  NcclOpaque& own = *call.own;
  const std::size_t whole = call.count * bytes_of(call.type);
  const auto slot = [&](int rank) {
    return own.shared->slots[static_cast<std::size_t>(rank)].data();
  };
  std::memcpy(slot(own.rank), call.from + part * whole + at, bytes);
  if (!all_come(own)) return false;
  const bool combines =
      call.kind == Kind::all_reduce || (call.kind == Kind::reduce && own.rank == call.root) ||
      (call.kind == Kind::reduce_scatter && part == static_cast<std::size_t>(own.rank));
  if (combines) {
    std::array<std::byte, slot_bytes> sum;
    std::memcpy(sum.data(), slot(0), bytes);
    for (int rank = 1; rank < own.ranks; ++rank)
      combine(sum.data(), slot(rank), bytes, call.type, call.operation);
    std::memcpy(call.into + at, sum.data(), bytes);
  } else if (call.kind == Kind::broadcast) {
    std::memcpy(call.into + at, slot(call.root), bytes);
  } else if (call.kind == Kind::all_gather) {
    for (int rank = 0; rank < own.ranks; ++rank)
      std::memcpy(call.into + static_cast<std::size_t>(rank) * whole + at, slot(rank), bytes);
  }
  return all_come(own);
}

// By the stream's thread.
void run(void* data) {
  const std::unique_ptr<Operation> call(static_cast<Operation*>(data));
  NcclOpaque& own = *call->own;
  if (is_told("dies")) kill(getpid(), SIGKILL);
  while ((is_told("hangs") || own.is_broken) && !own.is_aborted) nap();
  if (own.is_aborted) return;
  const std::size_t whole = call->count * bytes_of(call->type);
  const std::size_t parts =
      call->kind == Kind::reduce_scatter ? static_cast<std::size_t>(own.ranks) : 1;
  for (std::size_t part = 0; part < parts; ++part)
    for (std::size_t at = 0; at < whole; at += slot_bytes)
      if (!take_slot(*call, at, std::min(slot_bytes, whole - at), part)) return;
}

int queue(Operation call, void* stream) {
  if (call.own == nullptr || call.own->ends || call.own->is_aborted) return invalid;
  ++called;
  call.own->is_broken = is_told("broken");
  call.own->looks = 3;
  launch.load()(stream, run, new Operation(call));
  return in_progress;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// How it queues on streams, which are the test program's.
void fake_nccl_use(Launch function) { launch = function; }
int fake_nccl_made() { return made; }
int fake_nccl_called() { return called; }
int fake_nccl_aborted() { return aborted; }
int fake_nccl_destroyed() { return destroyed; }

int ncclGetVersion(int* found) { return *found = version(), success; }
const char* ncclGetErrorString(int) { return "a fake error"; }

int ncclGetUniqueId(Id* id) {
  const char* const folder = std::getenv("QUADRIGA_TEST_NCCL_FOLDER");
  std::snprintf(id->path.data(), id->path.size(), "%s/fake-nccl-XXXXXX", folder ? folder : "/tmp");
  const int file = mkstemp(id->path.data());
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return system_error;
  close(file);
  return success;
}

int ncclCommInitRankConfig(Handle* own, int ranks, Id id, int rank, Config* config) {
  if (config->magic != 0xcafebeef || config->blocking != 0 || config->size != 40) return invalid;
  if (is_told("no_start")) return system_error;
  const int file = open(id.path.data(), O_RDWR | O_CLOEXEC);
  void* const mapped =
      file < 0 ? MAP_FAILED
               : mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (mapped == MAP_FAILED) return system_error;
  NcclOpaque* const handle = keep(std::make_unique<NcclOpaque>());
  handle->shared = static_cast<Shared*>(mapped);
  handle->ranks = ranks;
  handle->rank = rank;
  *own = handle;
  ++made;
  if (is_told("late_start")) handle->is_broken = true;
  if (is_told("late_start") || is_told("never_starts")) return in_progress;
  // The last one leaves nothing behind.
  if (handle->shared->joined.fetch_add(1) + 1 == ranks) unlink(id.path.data());
  return in_progress;
}

int ncclCommGetAsyncError(Handle own, int* found) {
  const bool goes_on = own->looks > 0 && own->looks-- > 0;
  const bool waits =
      own->shared->joined < own->ranks || (own->ends && own->shared->finalized < own->ranks);
  *found = goes_on ? in_progress : own->is_broken ? system_error : waits ? in_progress : success;
  return success;
}

int ncclCommFinalize(Handle own) {
  own->ends = true;
  ++own->shared->finalized;
  return in_progress;
}
int ncclCommDestroy(Handle own) {
  if (!own->ends) std::abort();
  return ++destroyed, success;
}
int ncclCommAbort(Handle own) {
  own->is_aborted = true;
  return ++aborted, success;
}

int ncclBroadcast(const void* from, void* into, std::size_t count, int type, int root, Handle own,
                  void* stream) {
  return queue({own, Kind::broadcast, static_cast<const std::byte*>(from),
                static_cast<std::byte*>(into), count, type, 0, root},
               stream);
}
int ncclReduce(const void* from, void* into, std::size_t count, int type, int operation, int root,
               Handle own, void* stream) {
  return queue({own, Kind::reduce, static_cast<const std::byte*>(from),
                static_cast<std::byte*>(into), count, type, operation, root},
               stream);
}
int ncclAllReduce(const void* from, void* into, std::size_t count, int type, int operation,
                  Handle own, void* stream) {
  return queue({own, Kind::all_reduce, static_cast<const std::byte*>(from),
                static_cast<std::byte*>(into), count, type, operation, 0},
               stream);
}
int ncclAllGather(const void* from, void* into, std::size_t count, int type, Handle own,
                  void* stream) {
  return queue({own, Kind::all_gather, static_cast<const std::byte*>(from),
                static_cast<std::byte*>(into), count, type, 0, 0},
               stream);
}
int ncclReduceScatter(const void* from, void* into, std::size_t count, int type, int operation,
                      Handle own, void* stream) {
  return queue({own, Kind::reduce_scatter, static_cast<const std::byte*>(from),
                static_cast<std::byte*>(into), count, type, operation, 0},
               stream);
}

}  // extern "C"
#pragma GCC visibility pop
