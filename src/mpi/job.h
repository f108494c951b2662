// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/job.h: which ranks of an MPI program on this host have the library, without asking those
// that haven't.
//
// A collective call can't find out: ranks without the library would never come. So each process
// listens at an abstract Unix socket before MPI_Init, under a name that all processes of the job
// know, and at another one with its rank afterwards. MPI_Init returns when all have entered it, so
// then all first names are there; a rank waits for as many second ones. Names vanish with their
// processes; the kernel says whose they are.
#pragma once

#include <string>
#include <vector>

namespace quadriga::mpi {

class Job {
 public:
  /// Before MPI_Init. A process that no launcher of MPI started has no job.
  Job();
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// After MPI_Init: the ranks of MPI_COMM_WORLD on this host that have the library, ascending.
  /// Only this one if there is no job, or others don't say their rank within 20 s.
  std::vector<int> ranks(int own_rank);

 private:
  std::string key_;
  int started_ = -1;
  int known_ = -1;
};

}  // namespace quadriga::mpi
