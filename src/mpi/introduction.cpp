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

JoiningPlace joining_place(int ranks) {
  JoiningPlace place;
  try {
    const std::string address = message::new_address(), token = message::new_token();
    const message::Nonce nonce = message::random_nonce();
    static_assert(sizeof nonce >= sizeof place.mark);
    std::memcpy(place.mark.data(), nonce.data(), place.mark.size());
    std::strncpy(place.token, token.c_str(), sizeof place.token - 1);
    std::strncpy(place.address, address.c_str(), sizeof place.address - 1);
    place.probed = ProbedSends::create(ranks);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quadriga mpi-preload: %s\n", error.what());
  }
  return place;
}

}  // namespace quadriga::mpi
