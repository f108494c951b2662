// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/local_socket.h: sockets of one host that carry descriptors, and where to meet.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quadriga::message {

/// Owns a descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const noexcept { return number_; }
  int release() noexcept;
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// What a packet brought; nothing of it: the other side has closed, or was too slow.
struct Packet {
  std::vector<std::byte> bytes;
  std::vector<Descriptor> descriptors;
};

inline constexpr std::size_t most_descriptors = 200;

/// Throws unavailable if a limit of open files is the reason, an errno, of an error.
void check_open_files(int reason);

/// False if the other side is gone. Never waits: packets are small and few.
bool send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors);
/// Waits at most so long.
std::optional<Packet> receive_packet(int socket, std::chrono::milliseconds longest);

/// Whose process is at the other end.
struct PeerIdentity {
  uid_t user = 0;
  pid_t process = 0;
};
std::optional<PeerIdentity> peer_identity(int socket);

/// Where ranks meet: "file:PATH", a Unix socket there, or "tcp:127.0.0.1:PORT", which only tells
/// the name of a Unix socket without a path: descriptors can't pass through TCP.
struct MeetingPoint {
  std::string path;  ///< Empty: by port.
  int port = 0;
  /// Errors: invalid_argument naming what is accepted; also for hosts that aren't this one.
  static MeetingPoint parse(const std::string& address);
};

/// The first rank's side. Leaves no file behind.
class Listener {
 public:
  /// Errors: unavailable naming the address and the system's reason.
  explicit Listener(const MeetingPoint& point);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int socket() const noexcept { return socket_.get(); }
  int port_socket() const noexcept { return port_.get(); }
  /// A connection that waits, if there is one.
  Descriptor accept_one() const;
  /// Tells the name to those who wait at the port.
  void answer_port() const;

 private:
  std::string path_;
  std::string name_;
  Descriptor socket_;
  Descriptor port_;
};

/// Another rank's side: a connection, or nothing while the first rank isn't there yet.
Descriptor connect_to(const MeetingPoint& point);

}  // namespace quadriga::message
