// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/join_test.cpp: ranks that are processes: joining, large messages, deaths.
#include "message/join.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <numeric>

#include "unit/message/processes.h"

namespace quadriga::message {
namespace {

const Token token = parse_token("00112233445566778899aabbccddeeff");

using testing::expect;
using testing::file_address;

using Body = std::function<void(const Joining&)>;

std::vector<int> as_processes(int size, const std::string& address, const Body& body) {
  return testing::as_processes(size, [&](int rank) { body({address, rank, size, token}); });
}

std::shared_ptr<const Group> world(const Endpoint& endpoint) {
  auto group = std::make_shared<Group>();
  group->world.resize(static_cast<std::size_t>(endpoint.size()));
  std::iota(group->world.begin(), group->world.end(), 0);
  group->rank = endpoint.rank();
  return group;
}

Posting message_of(const Endpoint& endpoint, int peer, int tag, std::vector<double>& data,
                   CallKind operation) {
  return {{Layout::contiguous(static_cast<std::int64_t>(data.size()), ElementType::float64),
           reinterpret_cast<std::byte*>(data.data())},
          peer,
          tag,
          1,
          world(endpoint),
          operation};
}

void send(Endpoint& from, int peer, int tag, std::vector<double>& data, Patience patience = {}) {
  from.send(message_of(from, peer, tag, data, CallKind::send), patience);
}

void receive(Endpoint& at, int peer, int tag, std::vector<double>& data, Patience patience = {}) {
  at.receive(message_of(at, peer, tag, data, CallKind::recv), patience);
}

void pass_around(Endpoint& endpoint) {
  for (const std::size_t count : {0, 10, 100000}) {
    std::vector<double> data(count, endpoint.rank());
    const int size = endpoint.size(), next = (endpoint.rank() + 1) % size;
    std::vector<double> got(count);
    const auto arriving = endpoint.start_receive(
        message_of(endpoint, (endpoint.rank() + size - 1) % size, 1, got, CallKind::recv));
    send(endpoint, next, 1, data);
    endpoint.wait(arriving, {});
    expect(got == std::vector<double>(count, (endpoint.rank() + size - 1) % size), "wrong data");
  }
}

TEST(Join, ByFileLeavesNothingBehind) {
  const std::string address = file_address();
  const auto states = as_processes(3, address, [](const Joining& joining) {
    pass_around(*join(joining, {20, {}}));
  });
  EXPECT_EQ(states, std::vector<int>(3, 0));
  EXPECT_NE(access(address.substr(5).c_str(), F_OK), 0);
}

TEST(Join, ByPort) {
  const std::string address = "tcp:127.0.0.1:" + std::to_string(20000 + getpid() % 20000);
  const auto states = as_processes(2, address, [](const Joining& joining) {
    pass_around(*join(joining, {20, {}}));
  });
  EXPECT_EQ(states, std::vector<int>(2, 0));
}

TEST(Join, TurnsAwayWhoDoesNotKnowTheToken) {
  const auto states = as_processes(3, file_address(), [](const Joining& joining) {
    if (joining.rank < 2)
      return pass_around(*join({joining.address, joining.rank, 2, token}, {20, {}}));
    for (const int rank : {1, 0}) {
      Joining other{joining.address, rank, 2, parse_token("00112233445566778899aabbccddeefe")};
      if (rank == 0) other = {joining.address, 1, 5, token};
      try {
        join(other, {0.5, {}});
        expect(false, "admitted");
      } catch (const Error& error) {
        // The others may have been done already.
        expect(error.code() == Errc::invalid_argument || error.code() == Errc::peer_lost ||
                   error.code() == Errc::deadline,
               error.what());
      }
      if (access(joining.address.substr(5).c_str(), F_OK) != 0) return;
    }
  });
  EXPECT_EQ(states, std::vector<int>(3, 0));
}

TEST(Join, NamesTheRanksThatDoNotCome) {
  try {
    join({file_address(), 0, 3, token}, {0.1, {}});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::deadline);
    EXPECT_NE(std::string(error.what()).find("ranks 1, 2 of 3"), std::string::npos) << error.what();
  }
  EXPECT_THROW(join({"tcp:10.0.0.1:80", 0, 2, token}, {}), Error);
  EXPECT_THROW(join({"file:/x", 2, 2, token}, {}), Error);
}

TEST(Join, LeavesTheUsersOwnFilesAlone) {
  const std::string address = file_address();
  std::FILE* const file = std::fopen(address.substr(5).c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fclose(file);
  EXPECT_THROW(join({address, 0, 2, token}, {0.1, {}}), Error);
  EXPECT_EQ(access(address.substr(5).c_str(), F_OK), 0);
  unlink(address.substr(5).c_str());
}

TEST(Join, ARankThatDiesIsNamedByAllThatNeedIt) {
  const auto states = as_processes(3, file_address(), [](const Joining& joining) {
    const auto endpoint = join(joining, {20, {}});
    std::vector<double> data(joining.rank == 2 ? 1 : 100000, 5);
    if (joining.rank == 0) {
      std::vector<double> last(1, 7);
      send(*endpoint, 1, 1, last);
      raise(SIGKILL);
    }
    try {
      if (joining.rank == 1)
        send(*endpoint, 0, 1, data);  // Large: waits for its receiver.
      else
        receive(*endpoint, 0, 1, data);
      expect(false, "nothing was wrong");
    } catch (const PeerLost& error) {
      expect(error.rank() == 0, error.what());
      expect(std::string(error.what()).find("rank 0 is lost: it has ended") != std::string::npos,
             error.what());
    }
    if (joining.rank == 1) {
      // What it had sent before arrives, though.
      data.resize(1);
      receive(*endpoint, 0, any_tag, data);
      expect(data[0] == 7, "lost a message");
    }
  });
  EXPECT_EQ(WTERMSIG(states[0]), SIGKILL);
  EXPECT_EQ(states[1], 0);
  EXPECT_EQ(states[2], 0);
}

TEST(Join, AStoppedRankIsNotLost) {
  const auto states = as_processes(2, file_address(), [](const Joining& joining) {
    const auto endpoint = join(joining, {20, {}});
    std::vector<double> data(50000, 1), process(1, getpid());
    if (joining.rank == 0) {
      receive(*endpoint, 1, 1, process);
      const auto other = static_cast<pid_t>(process[0]);
      kill(other, SIGSTOP);
      try {
        send(*endpoint, 1, 2, data, {0.1, {}});
        expect(false, "sent to a stopped rank");
      } catch (const Error& error) {
        expect(error.code() == Errc::deadline, error.what());
      }
      data[0] = 2;
      kill(other, SIGCONT);
      send(*endpoint, 1, 2, data);
    } else {
      send(*endpoint, 0, 1, process);
      receive(*endpoint, 0, 2, data);
      expect(data[0] == 2, "received what was withdrawn");
    }
  });
  EXPECT_EQ(states, std::vector<int>(2, 0));
}

TEST(Join, AChildOfARankTouchesNothingAndHidesNoDeath) {
  const auto states = as_processes(2, file_address(), [](const Joining& joining) {
    auto endpoint = join(joining, {20, {}});
    std::vector<double> data(10, 1), child(1);
    if (joining.rank == 0) {
      child[0] = fork();
      if (child[0] == 0) {
        bool refused = false;
        try {
          send(*endpoint, 1, 1, data);
        } catch (const Error&) {
          refused = true;
        }
        endpoint.reset();
        // Outlives its parent, with all that it inherited.
        sleep(refused ? 30 : 0);
        _exit(0);
      }
      send(*endpoint, 1, 1, child);
      raise(SIGKILL);
    }
    receive(*endpoint, 0, 1, child);
    try {
      receive(*endpoint, 0, 1, data);
      expect(false, "nothing was wrong");
    } catch (const PeerLost&) {
      expect(kill(static_cast<pid_t>(child[0]), SIGKILL) == 0, "the child touched something");
    }
  });
  EXPECT_EQ(states[1], 0);
}

TEST(Join, MoreRanksThanCores) {
  const auto states = as_processes(7, file_address(), [](const Joining& joining) {
    const auto endpoint = join(joining, {20, {}});
    for (int i = 0; i < 50; ++i) pass_around(*endpoint);
  });
  EXPECT_EQ(states, std::vector<int>(7, 0));
}

}  // namespace
}  // namespace quadriga::message
