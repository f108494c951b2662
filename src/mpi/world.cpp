// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/world.cpp: joining at MPI_Init, leaving at MPI_Finalize, ranks of communicators.
#include "mpi/world.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/message.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include "message/join.h"
#include "message/wire/proof.h"
#include "mpi/device_buffers.h"

namespace quadriga::mpi {

Taken taken;
World* world = nullptr;

namespace {

// Ranks of a communicator, kept with it by MPI.
struct Peers {
  std::vector<int> by_rank;
  bool is_whole = false;
  std::optional<message::CommunicatorCore> core;  // From its first use on.
};
int keyval = MPI_KEYVAL_INVALID;
// Counts communicators that are gone, whose handles may be others' by now.
std::atomic<std::uint64_t> generation{1};

int drop_peers(MPI_Comm, int, void* peers, void*) {
  generation.fetch_add(1, std::memory_order_acq_rel);
  delete static_cast<Peers*>(peers);
  return MPI_SUCCESS;
}

Peers* make_peers(MPI_Comm comm) {
  auto made = std::make_unique<Peers>();
  int is_inter = 0, size = 0;
  MPI_Group group = MPI_GROUP_NULL, ours = MPI_GROUP_NULL;
  PMPI_Comm_test_inter(comm, &is_inter);
  if (is_inter != 0)
    PMPI_Comm_remote_group(comm, &group);
  else
    PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(world->comm, &ours);
  PMPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) ranks[static_cast<std::size_t>(i)] = i;
  made->by_rank.resize(ranks.size());
  PMPI_Group_translate_ranks(group, size, ranks.data(), ours, made->by_rank.data());
  for (int& each : made->by_rank)
    if (each == MPI_UNDEFINED) each = -1;
  made->is_whole = is_inter == 0 && size == world->core->size() && made->by_rank == ranks;
  PMPI_Group_free(&group);
  PMPI_Group_free(&ours);
  PMPI_Comm_set_attr(comm, keyval, made.get());
  return made.release();
}

void say(const char* what) { std::fprintf(stderr, "quadriga mpi-preload: %s\n", what); }

// A communicator of the ranks that have the library; only they call this.
MPI_Comm comm_of(const std::vector<int>& ranks) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  PMPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  PMPI_Comm_create_group(MPI_COMM_WORLD, some, 0x5144, &made);
  PMPI_Group_free(&some);
  PMPI_Group_free(&all);
  return made;
}

struct Meeting {
  char address[128] = {};
  char token[64] = {};
  unsigned char mark[16] = {};
};

// What rank 0 tells the others: where to meet.
Meeting meeting_of(MPI_Comm comm, int rank) {
  Meeting meeting;
  if (rank == 0) {
    try {
      const std::string address = message::new_address(), token = message::new_token();
      std::strncpy(meeting.address, address.c_str(), sizeof meeting.address - 1);
      std::strncpy(meeting.token, token.c_str(), sizeof meeting.token - 1);
      const message::Nonce nonce = message::random_nonce();
      static_assert(sizeof nonce >= sizeof meeting.mark);
      std::memcpy(meeting.mark, nonce.data(), sizeof meeting.mark);
    } catch (const std::exception& error) {
      say(error.what());
    }
  }
  PMPI_Bcast(&meeting, sizeof meeting, MPI_BYTE, 0, comm);
  return meeting;
}

bool join(World& made) {
  int rank = 0, size = 0;
  PMPI_Comm_rank(made.comm, &rank);
  PMPI_Comm_size(made.comm, &size);
  const Meeting meeting = meeting_of(made.comm, rank);
  std::memcpy(made.mark.data(), meeting.mark, made.mark.size());
  int joined = 0;
  try {
    require(meeting.address[0] != '\0', "rank 0 has no place to meet at");
    message::Patience patience;
    patience.seconds = 60;
    auto endpoint =
        message::join({meeting.address, rank, size, message::parse_token(meeting.token)}, patience);
    made.core = std::make_unique<message::CommunicatorCore>(std::move(endpoint));
    joined = 1;
  } catch (const std::exception& error) {
    say(error.what());
  }
  // All of them, or none: those that haven't joined couldn't fetch what they are offered.
  int all = 0;
  PMPI_Allreduce(&joined, &all, 1, MPI_INT, MPI_MIN, made.comm);
  if (all != 0) made.probed = ProbedSends::share(made.comm);
  return all != 0;
}

// Which functions all ranks take over, who also have devices or the test mode.
void agree_on_functions(World& made, bool own) {
  std::array<int, functions> mine{}, all{};
  for (std::size_t i = 0; i < functions; ++i) mine[i] = own && !made.switches.disabled[i] ? 1 : 0;
  PMPI_Allreduce(mine.data(), all.data(), static_cast<int>(functions), MPI_INT, MPI_MIN, made.comm);
  std::ranges::transform(all, made.shared.begin(), [](int each) { return each != 0; });
}

}  // namespace

void before_init() noexcept {
  try {
    const Switches switches = read_switches();
    if (switches.off) return;
    world = new World(switches);
    if (switches.emulated)
      emulate_device_memory();
    else if (switches.cuda)
      find_cuda_memory();
  } catch (const std::exception& error) {
    say(error.what());
  }
}

void after_init(int thread_level) noexcept {
  if (world == nullptr) return;
  try {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    world->comm = comm_of(world->job.ranks(rank));
    PMPI_Comm_set_errhandler(world->comm, MPI_ERRORS_RETURN);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop_peers, &keyval, nullptr);
    const bool own = world->switches.host || device_buffers.load() != nullptr;
    int mine = own ? 1 : 0, any = 0;
    PMPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, world->comm);
    if (any == 0 || !join(*world)) return;
    agree_on_functions(*world, own);
    const int opens = world->switches.takes_receives() ? 1 : 0;
    world->opens.resize(static_cast<std::size_t>(world->core->size()));
    PMPI_Allgather(&opens, 1, MPI_INT, world->opens.data(), 1, MPI_INT, world->comm);
    taken = {true, opens != 0, own, thread_level == MPI_THREAD_MULTIPLE};
  } catch (const std::exception& error) {
    say(error.what());
  }
}

void before_finalize() noexcept {
  if (world == nullptr || world->comm == MPI_COMM_NULL) return;
  // What others sent has been received when they come here, so this rank's memory may go.
  PMPI_Barrier(world->comm);
  taken = {};
  try {
    if (world->core) {
      message::Patience patience;
      patience.seconds = 1;
      world->core->endpoint().close(patience);
    }
    const auto own = values_of(world->counters);
    auto sums = own;
    PMPI_Reduce(own.data(), sums.data(), static_cast<int>(own.size()), MPI_UINT64_T, MPI_SUM, 0,
                world->comm);
    int rank = 0, with = 0, all = 0;
    PMPI_Comm_rank(world->comm, &rank);
    PMPI_Comm_size(world->comm, &with);
    PMPI_Comm_size(MPI_COMM_WORLD, &all);
    if (rank == 0 && world->switches.counters) std::fputs(text_of(sums, all, with).c_str(), stderr);
  } catch (const std::exception& error) {
    say(error.what());
  }
  PMPI_Comm_free(&world->comm);
  PMPI_Comm_free_keyval(&keyval);
}

void let_progress() noexcept {
  int flag = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, 0, world->comm, &flag, MPI_STATUS_IGNORE);
}

namespace {

// Null if there is no such communicator.
Peers* peers_of(MPI_Comm comm) noexcept {
  struct Last {
    std::uint64_t comm = 0;
    std::uint64_t generation = 0;
    Peers* peers = nullptr;
  };
  static thread_local Last last;
  const std::uint64_t number = number_of(comm);
  const std::uint64_t now = generation.load(std::memory_order_acquire);
  if (last.comm != number || last.generation != now) {
    if (comm == MPI_COMM_NULL) return nullptr;
    static std::mutex making;  // Of two threads one makes it.
    const std::lock_guard lock(making);
    void* found = nullptr;
    int is_there = 0;
    if (PMPI_Comm_get_attr(comm, keyval, &found, &is_there) != MPI_SUCCESS) return nullptr;
    last = {number, now, is_there != 0 ? static_cast<Peers*>(found) : make_peers(comm)};
  }
  return last.peers;
}

}  // namespace

int peer_of(MPI_Comm comm, int rank) noexcept {
  const Peers* const peers = peers_of(comm);
  if (peers == nullptr || rank < 0 || static_cast<std::size_t>(rank) >= peers->by_rank.size())
    return -1;
  return peers->by_rank[static_cast<std::size_t>(rank)];
}

bool is_whole(MPI_Comm comm) noexcept {
  const Peers* const peers = peers_of(comm);
  return peers != nullptr && peers->is_whole;
}

message::CommunicatorCore& core_of(MPI_Comm comm, int number) {
  Peers& peers = *peers_of(comm);
  if (!peers.core) {
    peers.core = world->core->apart(static_cast<std::uint64_t>(number));
    world->next_group = number + 1;
  }
  return *peers.core;
}

}  // namespace quadriga::mpi
