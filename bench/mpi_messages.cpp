// SPDX-License-Identifier: BSD-3-Clause
// bench/mpi_messages.cpp: the messages of message_rounds.h by MPI, as a reference.
//
// Usage: quadriga-bench-mpi pingpong|bandwidth|collectives REPEAT SIZES [CORES]; numbers with commas between.
// It starts itself by mpiexec.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "collective_rounds.h"
#include "message_rounds.h"

namespace {

using namespace quadriga::bench;

class MpiPair : public MessagePair {
 public:
  MpiPair() { MPI_Comm_rank(MPI_COMM_WORLD, &rank_); }
  bool is_first() const override { return rank_ == 0; }
  void use(std::byte* data, std::size_t bytes, int parts) override {
    data_ = data;
    bytes_ = bytes;
    requests_.resize(static_cast<std::size_t>(parts));
  }
  void send(int part) override {
    MPI_Send(at(part), count(), MPI_BYTE, 1 - rank_, 1, MPI_COMM_WORLD);
  }
  void receive(int part) override {
    MPI_Recv(at(part), count(), MPI_BYTE, 1 - rank_, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  void send_all() override {
    for (int part = 0; part < parts(); ++part)
      MPI_Isend(at(part), count(), MPI_BYTE, 1 - rank_, 1, MPI_COMM_WORLD, request(part));
    MPI_Waitall(parts(), requests_.data(), MPI_STATUSES_IGNORE);
  }
  void receive_all() override {
    for (int part = 0; part < parts(); ++part)
      MPI_Irecv(at(part), count(), MPI_BYTE, 1 - rank_, 1, MPI_COMM_WORLD, request(part));
    MPI_Waitall(parts(), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  std::byte* at(int part) const { return data_ + static_cast<std::size_t>(part) * bytes_; }
  int count() const { return static_cast<int>(bytes_); }
  int parts() const { return static_cast<int>(requests_.size()); }
  MPI_Request* request(int part) { return &requests_[static_cast<std::size_t>(part)]; }

  int rank_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<MPI_Request> requests_;
};

class MpiCollectives : public CollectiveCalls {
 public:
  MpiCollectives() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void call(std::string_view name, double* from, double* into, int count) override {
    const MPI_Comm all = MPI_COMM_WORLD;
    if (name == "bcast") MPI_Bcast(from, count, MPI_DOUBLE, 0, all);
    if (name == "reduce") MPI_Reduce(from, into, count, MPI_DOUBLE, MPI_SUM, 0, all);
    if (name == "allreduce") MPI_Allreduce(from, into, count, MPI_DOUBLE, MPI_SUM, all);
    if (name == "allgather") MPI_Allgather(from, count, MPI_DOUBLE, into, count, MPI_DOUBLE, all);
    const int part = count / size_;
    if (name == "alltoall") MPI_Alltoall(from, part, MPI_DOUBLE, into, part, MPI_DOUBLE, all);
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};

// As one of two ranks, on whichever cores there are; bound to cores by ourselves or not at all.
int start_again(int count, char** words) {
  setenv("QUADRIGA_BENCH_MPI", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  // It would yield the core at each poll if it counted more ranks than cores.
  setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return 1;
  self[length] = '\0';
  std::string program = QUADRIGA_MPIEXEC, option = "-n", two = "2";
  std::vector<char*> all{program.data(), option.data(), two.data(), self};
  all.insert(all.end(), words + 1, words + count);
  all.push_back(nullptr);
  execvp(all[0], all.data());
  std::fprintf(stderr, "quadriga-bench-mpi: %s doesn't start\n", all[0]);
  return 3;
}

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string_view whole(text, static_cast<std::size_t>(length));
  // "Open MPI v4.1.4, package: ..." or several lines.
  return std::string(whole.substr(0, whole.find_first_of(",\n")));
}

void print(std::string_view name, std::size_t bytes, double found, const std::string& reference) {
  std::printf("{\"case\": \"%s\", \"bytes\": %zu, \"value\": %.6g, \"reference\": \"%s\"}\n",
              std::string(name).c_str(), bytes, found, reference.c_str());
  std::fflush(stdout);
}

void run_collectives(const std::string& sizes, int batches) {
  MpiCollectives calls;
  for (const std::size_t bytes : numbers_of(sizes))
    for (const char* const name : collective_names) {
      const double found = collective_seconds(calls, name, bytes, batches) * 1e6;
      if (calls.rank() == 0) print(name, bytes, found, library());
    }
}

void run(int count, char** words) {
  const bool rates = std::string_view(words[1]) == "bandwidth";
  MpiPair pair;
  pin_to(numbers_of(count > 4 ? words[4] : ""), pair.is_first());
  if (std::string_view(words[1]) == "collectives")
    return run_collectives(words[3], std::atoi(words[2]));
  const std::string name = library();
  for (const std::size_t bytes : numbers_of(words[3])) {
    MessageRounds rounds(pair, bytes, std::atoi(words[2]));
    const double found = rates ? rounds.rate() : rounds.one_way() * 1e6;
    if (pair.is_first()) {
      print(words[1], bytes, found, name);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::fputs("usage: quadriga-bench-mpi pingpong|bandwidth|collectives REPEAT SIZES [CORES]\n",
               stderr);
    return 2;
  }
  if (std::getenv("QUADRIGA_BENCH_MPI") == nullptr) return start_again(count, words);
  MPI_Init(nullptr, nullptr);
  try {
    run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quadriga-bench-mpi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
