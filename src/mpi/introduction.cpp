// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/introduction.cpp: the one exchange at the start, and the first rank's place to meet at.
#include "mpi/introduction.h"

#include <quadriga/message.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>

#include "message/wire/proof.h"

namespace quadriga::mpi {

std::vector<Introduction> introductions(const Introduction& own, MPI_Comm comm, std::size_t ranks) {
  static_assert(std::is_trivially_copyable_v<Introduction>);
  std::vector<Introduction> all(ranks);
  PMPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, comm);
  return all;
}

Meeting meeting_of(int ranks) {
  Meeting meeting;
  try {
    const std::string address = message::new_address(), token = message::new_token();
    const message::Nonce nonce = message::random_nonce();
    static_assert(sizeof nonce >= sizeof meeting.mark);
    std::memcpy(meeting.mark.data(), nonce.data(), meeting.mark.size());
    std::strncpy(meeting.token, token.c_str(), sizeof meeting.token - 1);
    std::strncpy(meeting.address, address.c_str(), sizeof meeting.address - 1);
    meeting.probed = ProbedSends::create(ranks);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quadriga mpi-preload: %s\n", error.what());
  }
  return meeting;
}

}  // namespace quadriga::mpi
