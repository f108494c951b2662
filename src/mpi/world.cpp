// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/world.cpp: joining at MPI_Init, leaving at MPI_Finalize, ranks of communicators.
#include "mpi/world.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include "message/join.h"
#include "mpi/device_buffers.h"
#include "mpi/introduction.h"

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
void open_comm(World& made, const std::vector<int>& ranks) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  PMPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  PMPI_Comm_create_group(MPI_COMM_WORLD, some, 0x5144, &made.comm);
  PMPI_Group_free(&some);
  PMPI_Group_free(&all);
  PMPI_Comm_set_errhandler(made.comm, MPI_ERRORS_RETURN);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop_peers, &keyval, nullptr);
}

// Whether all ranks have joined; those that haven't couldn't fetch what they are offered.
bool join(World& made, const JoiningPlace& place) {
  int rank = 0, size = 0;
  PMPI_Comm_rank(made.comm, &rank);
  PMPI_Comm_size(made.comm, &size);
  made.mark = place.mark;
  int mine[2] = {0, 0}, all[2] = {0, 0};  // Joined, and shares slots.
  try {
    require(place.address[0] != '\0', "rank 0 has no place to meet at");
    message::Patience patience;
    patience.seconds = 60;
    auto endpoint =
        message::join({place.address, rank, size, message::parse_token(place.token)}, patience);
    made.core = std::make_unique<message::CommunicatorCore>(std::move(endpoint));
    mine[0] = 1;
  } catch (const std::exception& error) {
    say(error.what());
  }
  made.probed = ProbedSends::open(place.probed, rank, size);
  mine[1] = made.probed ? 1 : 0;
  PMPI_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, made.comm);
  if (all[1] == 0) made.probed.reset();
  return all[0] != 0;
}

// What this rank says of itself, of so many.
Introduction introduction_of(const World& made, bool is_first, int ranks) {
  Introduction own;
  own.sends = made.switches.host || device_buffers.load() != nullptr;
  own.opens = made.switches.takes_receives();
  own.counts = made.switches.counters;
  for (std::size_t i = 0; i < functions; ++i)
    own.takes[i] = own.sends && !made.switches.disabled[i];
  if (is_first) own.place = joining_place(ranks);
  return own;
}

// Of all ranks with the library. They get a communicator of their own if they have a use for it, or
// can't do without, since others are in MPI_COMM_WORLD, too.
std::vector<Introduction> introduced(World& made, const Introduction& own,
                                     const std::vector<int>& ranks) {
  int size = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool are_all = ranks.size() == static_cast<std::size_t>(size);
  if (!are_all) open_comm(made, ranks);
  std::vector<Introduction> all =
      introductions(own, are_all ? MPI_COMM_WORLD : made.comm, ranks.size());
  if (are_all && (all.front().counts || std::ranges::any_of(all, &Introduction::sends)))
    open_comm(made, ranks);
  return all;
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
    const std::vector<int> ranks = world->job.ranks(rank);
    const Introduction own =
        introduction_of(*world, ranks.front() == rank, static_cast<int>(ranks.size()));
    const std::vector<Introduction> all = introduced(*world, own, ranks);
    world->is_counted = all.front().counts;
    world->is_joined =
        std::ranges::any_of(all, &Introduction::sends) && join(*world, all.front().place);
    ProbedSends::close(own.place.probed);
    if (!world->is_joined) return;
    for (std::size_t i = 0; i < functions; ++i)
      world->shared[i] =
          std::ranges::all_of(all, [&](const Introduction& each) { return each.takes[i]; });
    for (const Introduction& each : all) world->opens.push_back(each.opens ? 1 : 0);
    taken = {true, own.opens, own.sends, thread_level == MPI_THREAD_MULTIPLE};
  } catch (const std::exception& error) {
    say(error.what());
  }
}

namespace {

// The first rank prints all ranks' sums.
void print_counters() noexcept {
  const auto own = values_of(world->counters);
  auto sums = own;
  PMPI_Reduce(own.data(), sums.data(), static_cast<int>(own.size()), MPI_UINT64_T, MPI_SUM, 0,
              world->comm);
  int rank = 0, with = 0, all = 0;
  PMPI_Comm_rank(world->comm, &rank);
  PMPI_Comm_size(world->comm, &with);
  PMPI_Comm_size(MPI_COMM_WORLD, &all);
  if (rank == 0) std::fputs(text_of(sums, all, with).c_str(), stderr);
}

}  // namespace

void before_finalize() noexcept {
  if (world == nullptr || world->comm == MPI_COMM_NULL) return;
  // What others sent has been received when they come here, so this rank's memory may go.
  if (world->is_joined) PMPI_Barrier(world->comm);
  taken = {};
  try {
    if (world->core) {
      message::Patience patience;
      patience.seconds = 1;
      world->core->endpoint().close(patience);
    }
  } catch (const std::exception& error) {
    say(error.what());
  }
  if (world->is_counted) print_counters();
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
