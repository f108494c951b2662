// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/job.cpp: names of processes in the kernel's list of Unix sockets.
#include "mpi/job.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/config.h"

namespace quadriga::mpi {
namespace {

// What launchers of MPI give to the processes that they start, and only to them.
constexpr std::string_view rank_variables[] = {"PMIX_RANK", "PMI_RANK"};

// Fields of /proc/PID/stat behind the command: parent, and when it started.
struct Ancestry {
  int parent = 0;
  std::string start;
};
std::optional<Ancestry> ancestry_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end + 1));
  std::string word;
  Ancestry found;
  for (int field = 3; fields >> word; ++field) {
    if (field == 4) found.parent = std::stoi(word);
    if (field == 22) found.start = word;
  }
  return found;
}

// The launcher: the nearest ancestor that no launcher started. Empty if this process wasn't started
// by one.
std::string job_key() {
  for (const std::string_view variable : rank_variables) {
    if (!variable_of_process(getpid(), variable)) continue;
    int process = getpid();
    while (process > 1 && variable_of_process(process, variable)) {
      const auto above = ancestry_of(process);
      if (!above) return "";
      process = above->parent;
    }
    const auto launcher = ancestry_of(process);
    const auto space = variable_of_process(getpid(), "PMIX_NAMESPACE");
    return fmt::format("quadriga-mpi.{}.{}.{}.{}.", getuid(), process,
                       launcher ? launcher->start : "", space.value_or(""));
  }
  return "";
}

sockaddr_un address_of(const std::string& name, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), bytes);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return address;
}

int listen_at(const std::string& name) {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  socklen_t length = 0;
  const sockaddr_un address = address_of(name, length);
  if (bind(made, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
      listen(made, 4096) == 0)
    return made;
  close(made);
  return -1;
}

// Whether it was bound by that process of this user: anybody may take any name.
bool is_by(const std::string& name, int process) {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return false;
  socklen_t length = 0;
  const sockaddr_un address = address_of(name, length);
  ucred who{};
  socklen_t bytes = sizeof who;
  const bool is = connect(made, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
                  getsockopt(made, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 &&
                  who.uid == getuid() && who.pid == process;
  close(made);
  return is;
}

struct NamesOfJob {
  std::size_t started = 0;
  std::vector<int> ranks;
};

// Sockets that wait to be accepted have the same name: each counts once.
std::set<std::string> listed(const std::string& key) {
  std::set<std::string> found;
  std::ifstream file("/proc/net/unix");
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find("@" + key);
    if (at != std::string::npos) found.insert(line.substr(at + 1));
  }
  return found;
}

// Names are key PID or key PID . RANK.
NamesOfJob names_of(const std::string& key) {
  NamesOfJob found;
  for (const std::string& name : listed(key)) {
    const char* const end = name.data() + name.size();
    int process = 0;
    const auto number = std::from_chars(name.data() + key.size(), end, process);
    if (number.ec != std::errc() || !is_by(name, process)) continue;
    int rank = 0;
    if (number.ptr == end)
      ++found.started;
    else if (std::from_chars(number.ptr + 1, end, rank).ec == std::errc())
      found.ranks.push_back(rank);
  }
  std::ranges::sort(found.ranks);
  return found;
}

}  // namespace

Job::Job() : key_(job_key()) {
  if (!key_.empty()) started_ = listen_at(fmt::format("{}{}", key_, getpid()));
}

Job::~Job() {
  if (started_ >= 0) close(started_);
  if (known_ >= 0) close(known_);
}

std::vector<int> Job::ranks(int own_rank) {
  using namespace std::chrono_literals;
  if (started_ >= 0) known_ = listen_at(fmt::format("{}{}.{}", key_, getpid(), own_rank));
  if (known_ < 0) return {own_rank};
  const auto until = std::chrono::steady_clock::now() + 60s;
  do {
    const NamesOfJob found = names_of(key_);
    if (found.started > 0 && found.ranks.size() >= found.started) return found.ranks;
    std::this_thread::sleep_for(1ms);
  } while (std::chrono::steady_clock::now() < until);
  return {own_rank};
}

}  // namespace quadriga::mpi
