// SPDX-License-Identifier: BSD-3-Clause
// src/message/local_endpoints.cpp: a world whose ranks are threads of one process.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "message/endpoint.h"

namespace quadriga::message {

std::vector<std::shared_ptr<Endpoint>> local_endpoints(int ranks) {
  const auto segment = SharedSegment::local(ranks);
  std::vector<int> events;
  for (int i = 0; i < ranks; ++i) events.push_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::vector<std::shared_ptr<Endpoint>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Member> members;
    for (const int event : events)
      members.push_back({fcntl(event, F_DUPFD_CLOEXEC, 0), -1, getpid()});
    all.push_back(std::make_shared<Endpoint>(segment, rank, std::move(members)));
  }
  for (const int event : events) ::close(event);
  return all;
}

}  // namespace quadriga::message
