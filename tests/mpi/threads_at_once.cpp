// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/threads_at_once.cpp: threads of two ranks call MPI at once in all the ways in which
// requests of ours begin and end. For the thread sanitizer: linked with the sources of the preload
// library, it runs where MPI itself isn't sanitized.
//
// usage: mpiexec -n 2 threads_at_once [emulated]
#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

extern "C" {
void* quadriga_emulated_malloc(std::size_t bytes);
void quadriga_emulated_free(void* memory);
void quadriga_emulated_copy(void* to, const void* from, std::size_t bytes);
}

namespace {

constexpr int threads = 4, rounds = 24, most = 12000;
constexpr std::array sizes{1, 700, 3000, most};

int rank = 0;
bool emulated = false;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what);
  std::_Exit(3);
}

/// Doubles of a thread, on the host or in memory like a device's.
class Numbers {
 public:
  Numbers() : data_(made()) {}
  ~Numbers() { emulated ? quadriga_emulated_free(data_) : std::free(data_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  double* data() const noexcept { return data_; }
  void fill(double value) {
    const std::vector<double> all(most, value);
    put(data_, all.data());
  }
  // Of a message's elements, and of what is behind them.
  void expect(double value, int count, double behind) const {
    std::vector<double> all(most);
    put(all.data(), data_);
    check(all.front() == value && all[static_cast<std::size_t>(count - 1)] == value,
          "another message's elements");
    check(count == most || all[static_cast<std::size_t>(count)] == behind, "too many elements");
  }

 private:
  static constexpr std::size_t bytes = most * sizeof(double);
  static double* made() {
    return static_cast<double*>(emulated ? quadriga_emulated_malloc(bytes) : std::malloc(bytes));
  }
  static void put(void* to, const void* from) {
    emulated ? quadriga_emulated_copy(to, from, bytes)
             : static_cast<void>(std::memcpy(to, from, bytes));
  }
  double* data_;
};

/// What one thread does with the thread of its number on the other rank.
struct Pair {
  int thread;
  MPI_Comm own;  // Of these two threads alone.
  Numbers from{}, into{};

  int peer() const noexcept { return 1 - rank; }

  void pass(int round) {
    const int count = sizes[static_cast<std::size_t>(round + thread) % sizes.size()];
    const int tag = 10 * (thread * rounds + round);
    const MPI_Comm comm = round % 2 == 0 ? own : MPI_COMM_WORLD;
    from.fill(1000 * rank + round + 1);
    into.fill(-1);
    switch ((round / 2 + thread) % 8) {
      case 0:
        all_at_once(count, tag, comm);
        break;
      case 1:
        synchronous(count, tag, comm);
        break;
      case 2:
        persistent(count, tag, comm);
        break;
      case 3:
        exchanged(count, tag, comm);
        break;
      case 4:
        probed(count, tag, comm);
        break;
      case 5:
        asked(count, tag, comm);
        break;
      case 6:
        cancelled(count, tag, comm);
        break;
      default:
        freed(count, tag, comm);
        break;
    }
    into.expect(1000 * peer() + round + 1, count, -1);
  }

  // Of a datatype that is freed while its messages are in flight.
  void all_at_once(int count, int tag, MPI_Comm comm) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(count, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    std::array<MPI_Request, 2> both{};
    MPI_Irecv(into.data(), 1, type, MPI_ANY_SOURCE, tag, comm, &both[0]);
    MPI_Isend(from.data(), 1, type, peer(), tag, comm, &both[1]);
    MPI_Type_free(&type);
    MPI_Waitall(2, both.data(), MPI_STATUSES_IGNORE);
  }

  void synchronous(int count, int tag, MPI_Comm comm) {
    std::array<MPI_Request, 2> both{};
    MPI_Issend(from.data(), count, MPI_DOUBLE, peer(), tag, comm, &both[0]);
    MPI_Irecv(into.data(), count, MPI_DOUBLE, peer(), tag, comm, &both[1]);
    for (int ended = 0; ended < 2; ++ended) {
      int index = MPI_UNDEFINED;
      MPI_Waitany(2, both.data(), &index, MPI_STATUS_IGNORE);
      check(index != MPI_UNDEFINED, "Waitany: no request");
    }
  }

  void persistent(int count, int tag, MPI_Comm comm) {
    std::array<MPI_Request, 2> both{};
    MPI_Send_init(from.data(), count, MPI_DOUBLE, peer(), tag, comm, &both[0]);
    MPI_Recv_init(into.data(), count, MPI_DOUBLE, peer(), tag, comm, &both[1]);
    for (int time = 0; time < 2; ++time) {
      MPI_Startall(2, both.data());
      for (int ended = 0; ended < 2;) {
        std::array<int, 2> indices{};
        int some = 0;
        MPI_Testsome(2, both.data(), &some, indices.data(), MPI_STATUSES_IGNORE);
        check(some != MPI_UNDEFINED, "Testsome: no request");
        ended += some;
      }
    }
    for (MPI_Request& each : both) MPI_Request_free(&each);
  }

  // By two calls at once, and by a collective of the threads' own communicator.
  void exchanged(int count, int tag, MPI_Comm comm) {
    MPI_Sendrecv(from.data(), count, MPI_DOUBLE, peer(), tag, into.data(), count, MPI_DOUBLE,
                 peer(), tag, comm, MPI_STATUS_IGNORE);
    const Numbers sum;
    MPI_Allreduce(from.data(), sum.data(), count, MPI_DOUBLE, MPI_MAX, own);
    MPI_Bcast(sum.data(), count, MPI_DOUBLE, 1, own);
  }

  void probed(int count, int tag, MPI_Comm comm) {
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Isend(from.data(), count, MPI_DOUBLE, peer(), tag, comm, &sent);
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status{};
    int found = 0, there = 0;
    MPI_Probe(peer(), tag, comm, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &there);
    check(there == count, "Probe: another count");
    while (found == 0) MPI_Improbe(MPI_ANY_SOURCE, tag, comm, &found, &message, &status);
    MPI_Mrecv(into.data(), count, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }

  void asked(int count, int tag, MPI_Comm comm) {
    std::array<MPI_Request, 2> both{};
    MPI_Irecv(into.data(), count, MPI_DOUBLE, peer(), tag, comm, &both[0]);
    MPI_Isend(from.data(), count, MPI_DOUBLE, peer(), tag, comm, &both[1]);
    int ended = 0;
    while (ended == 0) MPI_Request_get_status(both[0], &ended, MPI_STATUS_IGNORE);
    for (MPI_Request& each : both)
      for (ended = 0; ended == 0;) MPI_Test(&each, &ended, MPI_STATUS_IGNORE);
  }

  void cancelled(int count, int tag, MPI_Comm comm) {
    MPI_Request nothing = MPI_REQUEST_NULL;
    MPI_Status status{};
    int is_cancelled = 0;
    double none = 0;
    MPI_Irecv(&none, 1, MPI_DOUBLE, peer(), tag + 1, comm, &nothing);
    MPI_Cancel(&nothing);
    MPI_Wait(&nothing, &status);
    MPI_Test_cancelled(&status, &is_cancelled);
    check(is_cancelled != 0, "a receive wasn't cancelled");
    all_at_once(count, tag, comm);
  }

  // Whoever has received it says so: only then may the memory be used again.
  void freed(int count, int tag, MPI_Comm comm) {
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Isend(from.data(), count, MPI_DOUBLE, peer(), tag, comm, &sent);
    MPI_Request_free(&sent);
    MPI_Recv(into.data(), count, MPI_DOUBLE, peer(), tag, comm, MPI_STATUS_IGNORE);
    int said = round_of_word, heard = 0;
    MPI_Sendrecv(&said, 1, MPI_INT, peer(), tag + 2, &heard, 1, MPI_INT, peer(), tag + 2, comm,
                 MPI_STATUS_IGNORE);
    check(heard == round_of_word, "another word");
  }
  static constexpr int round_of_word = 4711;
};

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE, size = 0;
  emulated = argc > 1 && std::strcmp(argv[1], "emulated") == 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(level == MPI_THREAD_MULTIPLE && size == 2, "expected two ranks, at MPI_THREAD_MULTIPLE");
  std::array<MPI_Comm, threads> comms{};
  for (MPI_Comm& each : comms) MPI_Comm_dup(MPI_COMM_WORLD, &each);
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([i, &comms] {
      Pair pair{i, comms[static_cast<std::size_t>(i)]};
      for (int round = 0; round < rounds; ++round) pair.pass(round);
    });
  for (std::thread& each : all) each.join();
  for (MPI_Comm& each : comms) MPI_Comm_free(&each);
  MPI_Finalize();
  std::printf("rank %d: %d threads, %d rounds\n", rank, threads, rounds);
  return 0;
}
