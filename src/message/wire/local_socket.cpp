// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/local_socket.cpp: the system calls of sockets.
#include "message/wire/local_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <quadriga/error.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/units.h"
#include "message/wire/proof.h"

namespace quadriga::message {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_packet_bytes = 1024;

struct UnixAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};

// A path, or an abstract name, which begins with a zero byte.
UnixAddress address_of(const std::string& path) {
  UnixAddress made;
  made.address.sun_family = AF_UNIX;
  if (path.size() >= sizeof made.address.sun_path)
    fail(Errc::invalid_argument, fmt::format("join: the path '{}' is longer than {} bytes", path,
                                             sizeof made.address.sun_path - 1));
  std::memcpy(made.address.sun_path, path.data(), path.size());
  const bool is_abstract = !path.empty() && path[0] == '\0';
  made.length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (is_abstract ? 0 : 1));
  return made;
}

Descriptor unix_socket() {
  Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!made) check_open_files(errno);
  if (!made) fail(Errc::unavailable, fmt::format("no socket: {}", std::strerror(errno)));
  return made;
}

bool bind_to(const Descriptor& socket, const UnixAddress& to) {
  return bind(socket.get(), reinterpret_cast<const sockaddr*>(&to.address), to.length) == 0;
}

bool connects(const Descriptor& socket, const UnixAddress& to) {
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.address), to.length) == 0;
}

[[noreturn]] void refuse(const std::string& place) {
  fail(Errc::unavailable, fmt::format("join: can't listen at {}: {}", place, std::strerror(errno)));
}

// Not the user's own file: nobody listens there either.
bool is_socket(const std::string& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode);
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::string random_name() {
  std::string name("\0quadriga-", 10);
  for (const std::byte each : random_nonce())
    name += fmt::format("{:02x}", static_cast<unsigned>(each));
  return name;
}

// The name that the first rank tells at its port; empty: it isn't there yet, or somebody else is,
// who may say as little as he likes: all together has a second.
std::string ask_port(int port) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::seconds(1);
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = loopback(port);
  if (!socket || connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return {};
  std::array<char, 108> text{};
  std::size_t got = 0;
  while (got < text.size() - 1) {
    pollfd asked{socket.get(), POLLIN, 0};
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    if (left.count() <= 0 || poll(&asked, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t count = read(socket.get(), text.data() + got, text.size() - 1 - got);
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got > 1 && text[0] == '\0' ? std::string(text.data(), got) : std::string();
}

}  // namespace

void check_open_files(int reason) {
  if (reason == EMFILE || reason == ENFILE)
    fail(Errc::unavailable,
         fmt::format("join: {}; raise the limit of open files (ulimit -n)", std::strerror(reason)));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}
Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}
int Descriptor::release() noexcept { return std::exchange(number_, -1); }

bool send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t size = descriptors.size() * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(head), descriptors.data(), size);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

std::optional<Packet> receive_packet(int socket, milliseconds longest) {
  pollfd asked{socket, POLLIN, 0};
  if (poll(&asked, 1, static_cast<int>(longest.count())) <= 0) return std::nullopt;
  Packet packet;
  packet.bytes.resize(most_packet_bytes);
  iovec part{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got <= 0) return std::nullopt;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
      packet.descriptors.emplace_back(number);
    }
  }
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
    // It sent too many, or there is no room for them here: that is tried.
    const Descriptor spare(fcntl(socket, F_DUPFD_CLOEXEC, 0));
    if (!spare) check_open_files(errno);
    return std::nullopt;
  }
  packet.bytes.resize(static_cast<std::size_t>(got));
  return packet;
}

std::optional<PeerIdentity> peer_identity(int socket) {
  ucred found{};
  socklen_t length = sizeof found;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &length) != 0) return std::nullopt;
  return PeerIdentity{found.uid, found.pid};
}

MeetingPoint MeetingPoint::parse(const std::string& address) {
  const auto begins = [&](std::string_view with) { return address.rfind(with, 0) == 0; };
  if (begins("file:") && address.size() > 5) return {address.substr(5), 0};
  for (const std::string_view host : {"tcp:127.0.0.1:", "tcp:localhost:"})
    if (begins(host))
      return {"", static_cast<int>(parse_integer(address.substr(host.size()), 1, 65535))};
  fail(Errc::invalid_argument,
       fmt::format("join: '{}' is no address; expected file:PATH or tcp:127.0.0.1:PORT. Ranks are "
                   "processes of one host",
                   address));
}

Listener::Listener(const MeetingPoint& point) : socket_(unix_socket()) {
  name_ = point.path.empty() ? random_name() : point.path;
  const UnixAddress at = address_of(name_);
  bool bound = bind_to(socket_, at);
  // Somebody's who ended before everybody had come; or somebody listens there.
  if (!bound && errno == EADDRINUSE && !point.path.empty() && is_socket(name_) &&
      !connects(unix_socket(), at) && errno == ECONNREFUSED && unlink(name_.c_str()) == 0)
    bound = bind_to(socket_, at);
  if (!bound) refuse("file:" + point.path);
  path_ = point.path;
  if (listen(socket_.get(), SOMAXCONN) != 0) refuse("file:" + point.path);
  if (!point.path.empty()) return;
  port_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  setsockopt(port_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in to = loopback(point.port);
  if (bind(port_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      listen(port_.get(), SOMAXCONN) != 0)
    refuse(fmt::format("tcp:127.0.0.1:{}", point.port));
}

Listener::~Listener() {
  if (!path_.empty()) unlink(path_.c_str());
}

Descriptor Listener::accept_one() const {
  Descriptor accepted(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted) check_open_files(errno);
  return accepted;
}

void Listener::answer_port() const {
  const Descriptor asking(accept4(port_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (asking) static_cast<void>(send(asking.get(), name_.data(), name_.size(), MSG_NOSIGNAL));
}

Descriptor connect_to(const MeetingPoint& point) {
  const std::string name = point.path.empty() ? ask_port(point.port) : point.path;
  if (name.empty()) return {};
  Descriptor socket = unix_socket();
  if (!connects(socket, address_of(name))) return {};
  return socket;
}

}  // namespace quadriga::message
