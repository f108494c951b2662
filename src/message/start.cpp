// SPDX-License-Identifier: BSD-3-Clause
// src/message/start.cpp: what launchers say of a process, and how its ranks come to share a token.
#include "message/start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/message.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <thread>

#include "message/join.h"
#include "message/waiting.h"
#include "message/wire/local_socket.h"

namespace quadriga::message {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Variables = std::map<std::string, std::string>;

constexpr std::string_view quadriga_prefix = "QUADRIGA_LAUNCH_";

std::string hexadecimal(const Nonce& bytes) {
  std::string text;
  for (const std::byte each : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(each));
  return text;
}

// Who started this process, and how it names what we need.
struct StartedBy {
  std::string_view name;
  const char* rank;
  const char* size;
  const char* local_size;
};
constexpr StartedBy ours{"quadriga launch", "QUADRIGA_LAUNCH_RANK", "QUADRIGA_LAUNCH_SIZE", ""};
constexpr StartedBy torchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"};
constexpr StartedBy open_mpi{"Open MPI's mpiexec", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr StartedBy hydra{"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"};

// Reads what one launcher says. Errors name its variable.
class Said {
 public:
  Said(const StartedBy& launcher, const Variables& all) : launcher_(launcher), all_(all) {}

  bool any() const { return all_.contains(launcher_.rank) || all_.contains(launcher_.size); }
  const std::string& text(const char* name) const {
    const auto found = all_.find(name);
    if (found == all_.end())
      fail(Errc::invalid_argument,
           fmt::format("world: {} isn't set, but other variables of {} are", name, launcher_.name));
    return found->second;
  }
  int number(const char* name, int least, int most) const {
    const std::string& given = text(name);
    int value = 0;
    const char* const end = given.data() + given.size();
    const auto [stop, error] = std::from_chars(given.data(), end, value);
    if (error != std::errc{} || stop != end || value < least || value > most)
      fail(Errc::invalid_argument,
           fmt::format("world: {} is '{}'; expected {} to {}", name, given, least, most));
    return value;
  }
  int size() const { return number(launcher_.size, 1, 1 << 20); }
  int rank() const { return number(launcher_.rank, 0, size() - 1); }
  // Errors: unavailable.
  void check_one_host() const {
    if (all_.contains(launcher_.local_size) && number(launcher_.local_size, 1, 1 << 20) != size())
      fail(Errc::unavailable,
           fmt::format("world: {} has started {} ranks on several hosts; this works on one host",
                       launcher_.name, size()));
  }

 private:
  const StartedBy& launcher_;
  const Variables& all_;
};

// A file in a folder that others can write to, too: neither their files nor links are followed.
class TokenFile {
 public:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  ~TokenFile() {
    if (made_) unlink(path_.c_str());
  }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  // What an earlier run left there is replaced at once, never seen half-written.
  std::string make() {
    const std::string token = new_token();
    std::string own = path_ + ".XXXXXX";
    const Descriptor file(mkstemp(own.data()));
    const bool written =
        file && write(file.get(), token.data(), token.size()) == static_cast<ssize_t>(token.size());
    if (!written || rename(own.c_str(), path_.c_str()) != 0) {
      const std::string why = std::strerror(errno);
      if (file) unlink(own.c_str());
      fail(Errc::unavailable, fmt::format("world: {} can't be written: {}", path_, why));
    }
    made_ = true;
    return token;
  }
  // Nothing as long as there is none.
  std::string read() const {
    const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file) return {};
    struct stat about {};
    if (fstat(file.get(), &about) != 0 || about.st_uid != geteuid() || !S_ISREG(about.st_mode))
      fail(Errc::invalid_argument, fmt::format("world: {} is another user's, or no file", path_));
    std::string text(33, '\0');
    const ssize_t count = ::read(file.get(), text.data(), text.size());
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }
  // One that differs from what was tried.
  std::string await(const std::string& tried, const Patience& patience, Clock::time_point until) {
    while (true) {
      std::string token = read();
      if (!token.empty() && token != tried) return token;
      if (patience.interrupt) patience.interrupt();
      if (Clock::now() >= until)
        fail(Errc::deadline,
             fmt::format("world: rank 0 left no token at {} within {} s", path_, patience.seconds));
      std::this_thread::sleep_for(5ms);
    }
  }

 private:
  const std::string path_;
  bool made_ = false;
};

std::string in_temporary_folder(std::string name) {
  // What stands for a folder or ends a name would leave the folder.
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '\0' || c == '@'; }, '-');
  return std::filesystem::temp_directory_path() /
         fmt::format("quadriga-{}-{}", geteuid(), name.substr(0, 60));
}

// Ranks that know the name of their world, and nothing else of each other.
std::shared_ptr<Endpoint> join_by_name(const std::string& name, int rank, int size,
                                       Patience patience) {
  if (size == 1) return join({"file:alone", 0, 1, {}}, patience);
  const std::string path = in_temporary_folder(name);
  patience.since = Clock::now();
  const auto until = end_of(patience, *patience.since);
  TokenFile file(path + ".token");
  if (rank == 0)
    return join({fmt::format("file:{}", path), 0, size, parse_token(file.make())}, patience);
  std::string token;
  while (true) {
    token = file.await(token, patience, until);
    try {
      return join({fmt::format("file:{}", path), rank, size, parse_token(token)}, patience);
    } catch (const Error& error) {
      // An earlier run that failed may have left its token, and its ranks may still listen.
      const std::string now = file.read();
      if (error.code() != Errc::invalid_argument || now.empty() || now == token) throw;
    }
  }
}

std::shared_ptr<Endpoint> join_torchrun(const Said& said, const Variables& all,
                                        const Patience& patience) {
  const int size = said.size(), rank = said.rank();
  said.check_one_host();
  const auto run = all.find("TORCHELASTIC_RUN_ID"), port = all.find("MASTER_PORT");
  if (size > 1 && run == all.end() && port == all.end())
    fail(Errc::invalid_argument,
         "world: neither TORCHELASTIC_RUN_ID nor MASTER_PORT is set, so the ranks have no name in "
         "common; start them by torchrun or `quadriga launch`, or use join()");
  return join_by_name(fmt::format("torchrun-{}-{}", run == all.end() ? "none" : run->second,
                                  port == all.end() ? "0" : port->second),
                      rank, size, patience);
}

std::shared_ptr<Endpoint> join_open_mpi(const Said& said, const Variables& all,
                                        const Patience& patience) {
  const int size = said.size(), rank = said.rank();
  said.check_one_host();
  const auto job = all.find("PMIX_NAMESPACE");
  if (size > 1 && job == all.end())
    fail(Errc::invalid_argument,
         "world: PMIX_NAMESPACE isn't set, but other variables of Open MPI's mpiexec are");
  return join_by_name(fmt::format("mpi-{}", size > 1 ? job->second : ""), rank, size, patience);
}

}  // namespace

std::string new_token() { return hexadecimal(random_nonce()); }

std::string new_address() {
  return fmt::format("file:{}", in_temporary_folder(hexadecimal(random_nonce()).substr(0, 16)));
}

std::shared_ptr<Endpoint> join_world(const Variables& variables, const Patience& patience) {
  const bool is_ours = std::ranges::any_of(
      variables, [](const auto& each) { return each.first.starts_with(quadriga_prefix); });
  if (is_ours) {
    const Said said(ours, variables);
    const int size = said.number(ours.size, 1, most_ranks);
    return join({said.text("QUADRIGA_LAUNCH_ADDRESS"), said.rank(), size,
                 parse_token(said.text("QUADRIGA_LAUNCH_TOKEN"))},
                patience);
  }
  if (const Said said(torchrun, variables); said.any())
    return join_torchrun(said, variables, patience);
  if (const Said said(open_mpi, variables); said.any())
    return join_open_mpi(said, variables, patience);
  if (const Said said(hydra, variables); said.any() && said.size() > 1)
    fail(Errc::unavailable,
         fmt::format("world: this mpiexec has started {} ranks without a name in common; let the "
                     "program's MPI tell all ranks rank 0's new_address() and new_token(), then "
                     "join() (Python: join_mpi)",
                     said.size()));
  return join({"file:alone", 0, 1, {}}, patience);
}

}  // namespace quadriga::message
