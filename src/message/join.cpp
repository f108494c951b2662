// SPDX-License-Identifier: BSD-3-Clause
// src/message/join.cpp: the first rank's side of joining, and the others'.
#include "message/join.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <quadriga/error.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "message/wire/handshake.h"
#include "message/wire/local_socket.h"

namespace quadriga::message {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A stranger who says nothing holds others up for so long.
constexpr auto handshake = 2000ms;

// How long a join waits, in slices that look for signals.
class Until {
 public:
  explicit Until(const Patience& patience) : patience_(patience), begin_(Clock::now()) {}
  bool is_over() const {
    return patience_.seconds >= 0 &&
           std::chrono::duration<double>(Clock::now() - begin_).count() >= patience_.seconds;
  }
  void look() const {
    if (patience_.interrupt) patience_.interrupt();
  }

 private:
  const Patience& patience_;
  Clock::time_point begin_;
};

// The number of the process that a descriptor stands for, as this process's /proc counts; -1 once
// it has ended, or if it isn't seen. Nothing: it stands for no process.
std::optional<pid_t> number_of(int process) {
  std::ifstream info(fmt::format("/proc/self/fdinfo/{}", process));
  if (!info) check_open_files(errno);
  std::string word;
  std::optional<pid_t> number;
  while (info >> word)
    if (word == "Pid:") info >> number.emplace(-1);
  // 0: of a process that this /proc doesn't see, which may be any.
  if (number && *number <= 0) number = -1;
  return number;
}

// What isn't one might make who writes to it wait.
bool is_event(int descriptor) {
  std::array<char, 64> target{};
  const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
  const ssize_t length = readlink(link.c_str(), target.data(), target.size());
  return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) ==
                           "anon_inode:[eventfd]";
}

Descriptor own_process() {
  Descriptor made(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (!made)
    fail(Errc::unavailable,
         fmt::format("join: pidfd_open: {}; Linux 5.3 or later is needed, and an open file more",
                     std::strerror(errno)));
  return made;
}

Descriptor own_event() {
  Descriptor made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made)
    fail(Errc::unavailable, fmt::format("join: eventfd: {}; is a limit of open files (ulimit -n) "
                                        "reached?",
                                        std::strerror(errno)));
  return made;
}

// Descriptors of all ranks, in order: process, event.
std::shared_ptr<Endpoint> made(const Joining& joining, int memory, std::vector<Descriptor> all) {
  const auto segment = SharedSegment::map(joining.size, memory);
  const std::size_t size = static_cast<std::size_t>(joining.size);
  require(all.size() == 2 * size,
          fmt::format("join: rank 0 sent {} descriptors; expected {}", all.size(), 2 * size));
  std::vector<std::optional<pid_t>> processes;
  for (std::size_t rank = 0; rank < size; ++rank) {
    processes.push_back(number_of(all[2 * rank].get()));
    require(processes.back() && is_event(all[2 * rank + 1].get()),
            fmt::format("join: rank 0 sent other descriptors for rank {} than a process and an "
                        "event",
                        rank));
  }
  std::vector<Member> members;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    Member member;
    const bool is_own = static_cast<int>(i / 2) == joining.rank;
    member.pid = *processes[i / 2];
    member.event = all[i + 1].release();
    if (!is_own) member.process = all[i].release();
    members.push_back(member);
  }
  return std::make_shared<Endpoint>(segment, joining.rank, std::move(members));
}

class FirstRank {
 public:
  FirstRank(const Joining& joining, const Patience& patience)
      : joining_(joining),
        until_(patience),
        listener_(std::in_place, MeetingPoint::parse(joining.address)),
        sockets_(static_cast<std::size_t>(joining.size)),
        descriptors_(2 * static_cast<std::size_t>(joining.size)) {
    descriptors_[0] = own_process();
    descriptors_[1] = own_event();
  }

  std::shared_ptr<Endpoint> run(const Patience& patience) {
    while (!missing().empty()) {
      until_.look();
      if (until_.is_over())
        fail(Errc::deadline,
             fmt::format("join: ranks {} of {} didn't come to {} within {} s", missing(),
                         joining_.size, joining_.address, patience.seconds));
      wait();
    }
    listener_.reset();  // Who comes to the address from now on belongs to the next world there.
    const Descriptor memory(SharedSegment::create(joining_.size));
    for (std::size_t rank = 1; rank < sockets_.size(); ++rank)
      if (!hand_out(sockets_[rank].get(), memory.get())) lost(static_cast<int>(rank));
    // Nobody begins before everybody has everything.
    const std::byte go{2};
    for (std::size_t rank = 1; rank < sockets_.size(); ++rank)
      send_packet(sockets_[rank].get(), {&go, 1}, {});
    return made(joining_, memory.get(), std::move(descriptors_));
  }

 private:
  std::string missing() const {
    std::string text;
    for (std::size_t rank = 1; rank < sockets_.size(); ++rank)
      if (!sockets_[rank]) text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
    return text;
  }

  [[noreturn]] static void lost(int rank) {
    throw PeerLost(rank, fmt::format("join: rank {} is lost: it ended before all had come", rank));
  }

  void wait() {
    std::vector<pollfd> asked{{listener_->socket(), POLLIN, 0},
                              {listener_->port_socket(), POLLIN, 0}};
    for (std::size_t rank = 1; rank < sockets_.size(); ++rank)
      asked.push_back({sockets_[rank].get(), POLLIN, 0});
    if (poll(asked.data(), asked.size(), 50) <= 0) return;
    for (std::size_t i = 2; i < asked.size(); ++i)
      if (asked[i].revents) lost(static_cast<int>(i) - 1);  // It has nothing to say now.
    if (asked[1].revents) listener_->answer_port();
    if (asked[0].revents) admit(listener_->accept_one());
  }

  void admit(Descriptor socket) {
    const auto who = peer_identity(socket.get());
    if (!who || who->user != geteuid()) return;
    const auto hello = said<Hello>(receive_packet(socket.get(), handshake));
    if (!hello || hello->version != Hello::protocol)
      return refuse(socket, "speaks another protocol");
    const Nonce nonce = random_nonce();
    const Challenge challenge{nonce, proof_of(joining_.token, *hello, nonce, true)};
    if (!send_packet(socket.get(), bytes_of(challenge), {})) return;
    auto answer = receive_packet(socket.get(), handshake);
    const auto proof = said<Proof>(answer);
    if (!proof || !same_proof(*proof, proof_of(joining_.token, *hello, nonce, false)))
      return refuse(socket, "has another token");
    if (hello->size != joining_.size)
      return refuse(socket,
                    fmt::format("says {} ranks, rank 0 says {}", hello->size, joining_.size));
    const auto rank = static_cast<std::size_t>(hello->rank);
    if (hello->rank <= 0 || rank >= sockets_.size() || sockets_[rank])
      return refuse(socket, fmt::format("says rank {}, which is taken or doesn't exist", rank));
    if (answer->descriptors.size() != 2 ||
        number_of(answer->descriptors[0].get()) != who->process ||
        !is_event(answer->descriptors[1].get()))
      return refuse(socket, "sent other descriptors than its own");
    descriptors_[2 * rank] = std::move(answer->descriptors[0]);
    descriptors_[2 * rank + 1] = std::move(answer->descriptors[1]);
    sockets_[rank] = std::move(socket);
  }

  // Best effort: a stranger may be gone.
  static void refuse(const Descriptor& socket, const std::string& why) {
    send_packet(socket.get(), std::as_bytes(std::span(why)), {});
  }

  bool answers(int socket) const {
    while (true) {
      pollfd asked{socket, POLLIN, 0};
      if (poll(&asked, 1, 50) > 0) return receive_packet(socket, 0ms).has_value();
      until_.look();
      if (until_.is_over()) fail(Errc::deadline, "join: a rank that came doesn't answer");
    }
  }

  bool hand_out(int socket, int memory) const {
    const std::byte mark{1};
    if (!send_packet(socket, {&mark, 1}, {&memory, 1})) return false;
    std::vector<int> numbers;
    for (const Descriptor& each : descriptors_) numbers.push_back(each.get());
    for (std::size_t at = 0; at < numbers.size(); at += most_descriptors) {
      const std::size_t count = std::min(most_descriptors, numbers.size() - at);
      if (!send_packet(socket, {&mark, 1}, std::span(numbers).subspan(at, count))) {
        if (errno == ETOOMANYREFS || errno == EMFILE)
          fail(Errc::unavailable, fmt::format("join: {}; raise the limit of open files (ulimit -n)",
                                              std::strerror(errno)));
        return false;
      }
    }
    // Descriptors that nobody has taken yet count against a limit: one rank at a time.
    return answers(socket);
  }

  const Joining& joining_;
  Until until_;
  std::optional<Listener> listener_;
  std::vector<Descriptor> sockets_;      // By rank; none for the first.
  std::vector<Descriptor> descriptors_;  // Process and event of each rank.
};

class OtherRank {
 public:
  OtherRank(const Joining& joining, const Patience& patience)
      : joining_(joining), patience_(patience), until_(patience) {}

  std::shared_ptr<Endpoint> run() {
    const MeetingPoint point = MeetingPoint::parse(joining_.address);
    while (!(socket_ = connect_to(point)) || !introduce()) {
      wait();
      std::this_thread::sleep_for(5ms);
    }
    Packet first = next();
    if (first.descriptors.size() != 1)
      fail(Errc::invalid_argument,
           fmt::format("join: rank 0 turned rank {} away: it {}", joining_.rank,
                       std::string_view(reinterpret_cast<const char*>(first.bytes.data()),
                                        first.bytes.size())));
    std::vector<Descriptor> all;
    const std::size_t most = 2 * static_cast<std::size_t>(joining_.size);
    while (all.size() < most) {
      Packet packet = next();
      require(!packet.descriptors.empty(), "join: rank 0 sent a packet without descriptors");
      for (Descriptor& each : packet.descriptors) all.push_back(std::move(each));
    }
    const std::byte mark{1};
    send_packet(socket_.get(), {&mark, 1}, {});
    require(next().bytes == std::vector<std::byte>{std::byte{2}}, "join: rank 0 gave up");
    return made(joining_, first.descriptors[0].get(), std::move(all));
  }

 private:
  void wait() {
    until_.look();
    if (until_.is_over())
      fail(Errc::deadline, fmt::format("join: not all of {} ranks came to {} within {} s",
                                       joining_.size, joining_.address, patience_.seconds));
  }

  // False if the other side hung up before it said anything: it belonged to an earlier world.
  bool introduce() {
    const auto who = peer_identity(socket_.get());
    require(who && who->user == geteuid(), "join: another user listens at the address");
    const Hello hello{Hello::protocol, joining_.rank, joining_.size, random_nonce()};
    send_packet(socket_.get(), bytes_of(hello), {});
    const auto packet = next_if_any();
    if (!packet) return false;
    const auto challenge = said<Challenge>(packet);
    if (!challenge ||
        !same_proof(challenge->proof, proof_of(joining_.token, hello, challenge->nonce, true)))
      fail(Errc::invalid_argument,
           fmt::format("join: rank 0 at {} has another token, or is no rank 0", joining_.address));
    const Proof proof = proof_of(joining_.token, hello, challenge->nonce, false);
    const Descriptor process = own_process(), event = own_event();
    const std::array numbers{process.get(), event.get()};
    send_packet(socket_.get(), bytes_of(proof), numbers);
    return true;
  }

  // Waits for what rank 0 says; nothing if it hung up.
  std::optional<Packet> next_if_any() {
    while (true) {
      pollfd asked{socket_.get(), POLLIN, 0};
      if (poll(&asked, 1, 50) > 0) return receive_packet(socket_.get(), 0ms);
      wait();
    }
  }

  Packet next() {
    auto packet = next_if_any();
    if (!packet)
      throw PeerLost(0, "join: rank 0 is lost: it ended before all had come, or gave up");
    return std::move(*packet);
  }

  const Joining& joining_;
  const Patience& patience_;
  Until until_;
  Descriptor socket_;
};

}  // namespace

std::shared_ptr<Endpoint> join(const Joining& joining, const Patience& patience) {
  if (joining.size < 1 || joining.size > most_ranks)
    fail(Errc::invalid_argument,
         fmt::format("join: size is {}; expected 1 to {}", joining.size, most_ranks));
  if (joining.rank < 0 || joining.rank >= joining.size)
    fail(Errc::invalid_argument,
         fmt::format("join: rank is {}; expected 0 to {}", joining.rank, joining.size - 1));
  if (joining.size == 1) return local_endpoints(1).front();
  if (joining.rank == 0) return FirstRank(joining, patience).run(patience);
  return OtherRank(joining, patience).run();
}

}  // namespace quadriga::message
