// SPDX-License-Identifier: BSD-3-Clause
// tests/fuzz/joining_fuzz.cpp: libFuzzer is who meets a rank that joins: another rank that knows
// the token or doesn't, or the first one. It says what it likes, and sends any descriptors.
//
// Built on request, by Clang: cmake -DCMAKE_CXX_COMPILER=clang++-14 ..., target fuzz_joining.
#include <fcntl.h>
#include <poll.h>
#include <quadriga/error.h>
#include <quadriga/message.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fuzz/input.h"
#include "message/join.h"
#include "message/wire/handshake.h"

namespace quadriga::message {
namespace {

const Token token = parse_token("00112233445566778899aabbccddeeff");

// What a rank may be sent: what belongs there, and other files.
class Files {
 public:
  explicit Files(int ranks) {
    add(SharedSegment::create(ranks));
    add(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
    add(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    add(SharedSegment::create(ranks + 1));
    add(open("/dev/null", O_RDWR | O_CLOEXEC));
  }
  int any(Input& input) const { return all_[input.take<std::uint8_t>() % all_.size()].get(); }
  int memory() const { return all_[0].get(); }
  int process() const { return all_[1].get(); }
  int event() const { return all_[2].get(); }

 private:
  void add(int file) {
    if (file < 0) std::abort();
    all_.emplace_back(file);
  }
  std::vector<Descriptor> all_;
};

class Stranger {
 public:
  Stranger(Input input, const MeetingPoint& point, int size)
      : input_(input), point_(point), size_(size), files_(size) {}

  // Meets the first rank.
  void come() {
    Descriptor socket;
    while (!(socket = connect_to(point_))) {
      if (gave_up_) return;
      std::this_thread::yield();
    }
    if (!often()) return say_anything(socket.get());
    Hello hello;
    hello.rank = often() ? 1 : input_.take<std::int32_t>();
    hello.size = often() ? size_ : input_.take<std::int32_t>();
    send_packet(socket.get(), bytes_of(hello), {});
    const auto challenge = said<Challenge>(next(socket.get()));
    if (!challenge) return;
    const Proof proof =
        often() ? proof_of(token, hello, challenge->nonce, false) : input_.take<Proof>();
    std::vector<int> sent{files_.process(), files_.event()};
    if (!often()) sent = any_files();
    send_packet(socket.get(), bytes_of(proof), sent);
    if (!next(socket.get())) return;
    if (often()) say(socket.get(), {});
    say_anything(socket.get());
    while (next(socket.get())) continue;
  }
  // Is the first rank.
  void receive(const Listener& listener) {
    pollfd asked{listener.socket(), POLLIN, 0};
    poll(&asked, 1, patience);
    const Descriptor socket = listener.accept_one();
    const auto hello = said<Hello>(next(socket.get()));
    if (!hello) return;
    if (!often()) return say_anything(socket.get());
    const Nonce nonce = input_.take<Nonce>();
    send_packet(socket.get(), bytes_of(Challenge{nonce, proof_of(token, *hello, nonce, true)}), {});
    if (!next(socket.get())) return;
    if (often()) say(socket.get(), std::vector<int>{files_.memory()});
    if (often()) {
      std::vector<int> all;
      for (int rank = 0; rank < size_; ++rank) {
        all.push_back(often() ? files_.process() : files_.any(input_));
        all.push_back(often() ? files_.event() : files_.any(input_));
      }
      if (!often()) all.resize(input_.take<std::uint8_t>() % (all.size() + 1));
      say(socket.get(), all);
    }
    say_anything(socket.get());
    const std::byte go{2};
    send_packet(socket.get(), {&go, 1}, {});
  }
  void give_up() { gave_up_ = true; }

 private:
  static constexpr int patience = 100;  // Milliseconds.
  // Most is nearly right, so that what comes behind the first checks is reached.
  bool often() { return (input_.take<std::uint8_t>() & 7) != 1; }
  std::optional<Packet> next(int socket) const {
    return receive_packet(socket, std::chrono::milliseconds(patience));
  }
  std::vector<int> any_files() {
    std::vector<int> files(input_.take<std::uint8_t>() % 6);
    for (int& each : files) each = files_.any(input_);
    return files;
  }
  void say(int socket, const std::vector<int>& files) {
    const std::byte mark{1};
    send_packet(socket, {&mark, 1}, files);
  }
  void say_anything(int socket) {
    for (int packets = input_.take<std::uint8_t>() % 4; packets > 0; --packets) {
      std::vector<std::byte> bytes(1 + input_.take<std::uint8_t>());
      input_.fill(bytes);
      send_packet(socket, bytes, any_files());
    }
  }

  Input input_;
  const MeetingPoint point_;
  const int size_;
  const Files files_;
  std::atomic<bool> gave_up_{false};
};

// The least number that no file has: the same before and after, or a file was left open.
int free_number() {
  const Descriptor next(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  return next.get();
}

void run(Input input) {
  static const std::string address = new_address();
  const int before = free_number();
  const bool is_first = (input.take<std::uint8_t>() & 1) != 0;
  // One stranger makes no world of three.
  const int size = is_first ? 2 : 2 + (input.take<std::uint8_t>() & 1);
  {
    const MeetingPoint point = MeetingPoint::parse(address);
    std::optional<Listener> listener;
    if (!is_first) listener.emplace(point);
    Stranger stranger(input, point, size);
    std::atomic<bool> is_gone{false};
    std::thread thread([&] {
      if (is_first)
        stranger.come();
      else
        stranger.receive(*listener);
      listener.reset();
      is_gone = true;
      if (is_first) connect_to(point);  // Wakes it.
    });
    struct Over {};
    const Patience patience{20, [&] {
                              if (is_gone) throw Over{};
                            }};
    try {
      join({address, is_first ? 0 : 1, size, token}, patience);
    } catch (const Error&) {
    } catch (const Over&) {
    }
    stranger.give_up();
    thread.join();
  }
  if (free_number() != before) std::abort();
}

}  // namespace
}  // namespace quadriga::message

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  quadriga::message::run(
      quadriga::message::Input({reinterpret_cast<const std::byte*>(data), size}));
  return 0;
}
