// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/handshake_test.cpp: ranks that join meet others who send what they mustn't.
#include "message/wire/handshake.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <quadriga/error.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "message/join.h"
#include "unit/message/processes.h"

namespace quadriga::message {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const Token token = parse_token("00112233445566778899aabbccddeeff");

struct Files {
  Descriptor memory{SharedSegment::create(2)};
  Descriptor process{static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))};
  Descriptor event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

// A first rank that knows the token and sends these descriptors.
void be_first(const Listener& listener, int memory, const std::vector<int>& sent) {
  pollfd asked{listener.socket(), POLLIN, 0};
  poll(&asked, 1, 20000);
  const Descriptor socket = listener.accept_one();
  const auto hello = said<Hello>(receive_packet(socket.get(), 20s));
  ASSERT_TRUE(hello);
  const Nonce nonce = random_nonce();
  send_packet(socket.get(), bytes_of(Challenge{nonce, proof_of(token, *hello, nonce, true)}), {});
  ASSERT_TRUE(receive_packet(socket.get(), 20s));
  const std::byte mark{1}, go{2};
  send_packet(socket.get(), {&mark, 1}, {&memory, 1});
  for (const int each : sent) send_packet(socket.get(), {&mark, 1}, {&each, 1});
  send_packet(socket.get(), {&mark, 1}, std::vector<int>{sent[0], sent[1]});
  static_cast<void>(receive_packet(socket.get(), 20s));
  send_packet(socket.get(), {&go, 1}, {});
}

// Why rank 1 of 2 doesn't join such a first rank, which sends `sent` and then the first two again.
std::string refusal(const std::vector<int>& sent, int memory) {
  const std::string address = testing::file_address();
  const Listener listener(MeetingPoint::parse(address));
  std::thread first([&] { be_first(listener, memory, sent); });
  std::string why;
  try {
    join({address, 1, 2, token}, {20, {}});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    why = error.what();
  }
  first.join();
  return why;
}

TEST(Handshake, DescriptorsOfTheFirstRankAreCountedAndLookedAt) {
  const Files files;
  const int memory = files.memory.get(), process = files.process.get(), event = files.event.get();
  EXPECT_EQ(refusal({process, event}, memory), "");
  EXPECT_EQ(refusal({process, event, process}, memory),
            "join: rank 0 sent 5 descriptors; expected 4");
  const std::string others =
      "join: rank 0 sent other descriptors for rank 0 than a process and an event";
  EXPECT_EQ(refusal({event, process}, memory), others);
  EXPECT_EQ(refusal({process, memory}, memory), others);
  EXPECT_EQ(refusal({memory, event}, memory), others);
}

// Somebody else has the port, and says a byte now and then.
TEST(Handshake, WhoAnswersAtThePortHasASecond) {
  const Descriptor port(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(port.get(), name, length), 0);
  ASSERT_EQ(listen(port.get(), 1), 0);
  ASSERT_EQ(getsockname(port.get(), name, &length), 0);
  std::thread stranger([&] {
    const Descriptor asking(accept4(port.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const char zero = '\0';
    while (send(asking.get(), &zero, 1, MSG_NOSIGNAL) == 1) std::this_thread::sleep_for(300ms);
  });
  const auto begin = Clock::now();
  EXPECT_FALSE(connect_to({"", ntohs(address.sin_port)}));
  EXPECT_LT(Clock::now() - begin, 20s);  // It would have taken 32 s.
  stranger.join();
}

}  // namespace
}  // namespace quadriga::message
