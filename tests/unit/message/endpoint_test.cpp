// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/endpoint_test.cpp: messages between ranks that are threads of one process.
#include "message/endpoint.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "base/random.h"
#include "unit/message/endpoints.h"

namespace quadriga::message::testing {
namespace {

using Numbers = std::vector<std::int64_t>;
std::vector<double> numbers(std::size_t count, double first) {
  std::vector<double> data(count);
  std::iota(data.begin(), data.end(), first);
  return data;
}

// Runs a function for each rank, each in a thread of its own.
void as_ranks(int count, const std::function<void(Endpoint&)>& run) {
  as_threads(count, [&](const std::shared_ptr<Endpoint>& each) { run(*each); });
}

TEST(Endpoint, PassesMessagesOfAllSizesBothWays) {
  as_ranks(2, [](Endpoint& endpoint) {
    for (const std::size_t count : {0, 1, 3, 511, 1024, 1025, 20000, 1000000}) {
      std::vector<double> mine = numbers(count, endpoint.rank()), theirs(count);
      const int other = 1 - endpoint.rank();
      if (endpoint.rank() == 0) endpoint.send(to(endpoint, other, 7, place_of(mine)), {});
      const MessageStatus status = endpoint.receive(from(endpoint, other, 7, place_of(theirs)), {});
      if (endpoint.rank() == 1) endpoint.send(to(endpoint, other, 7, place_of(mine)), {});
      EXPECT_EQ(theirs, numbers(count, other));
      EXPECT_EQ(status.source, other);
      EXPECT_EQ(status.tag, 7);
      EXPECT_EQ(status.bytes, count * 8);
    }
  });
}

TEST(Endpoint, KeepsTheOrderOfMessagesAndMatchesByTag) {
  as_ranks(2, [](Endpoint& endpoint) {
    constexpr int rounds = 2000;
    if (endpoint.rank() == 0) {
      for (int i = 0; i < rounds; ++i) {
        std::vector<double> data = numbers(1 + static_cast<std::size_t>(i % 3) * 400, i);
        endpoint.send(to(endpoint, 1, i % 2, place_of(data)), {});
      }
    } else {
      // All of odd tags first.
      for (const int parity : {1, 0})
        for (int i = parity; i < rounds; i += 2) {
          std::vector<double> data(1 + static_cast<std::size_t>(i % 3) * 400);
          const int tag = parity == 1 ? 1 : any_tag;
          endpoint.receive(from(endpoint, i % 4 < 2 ? 0 : any_source, tag, place_of(data)), {});
          ASSERT_EQ(data[0], i);
        }
    }
  });
}

TEST(Endpoint, LayoutsMayDifferWhereElementsDoNot) {
  as_ranks(2, [](Endpoint& endpoint) {
    for (const std::int64_t n : {3, 40, 700}) {
      std::vector<double> data(static_cast<std::size_t>(n * n));
      const Numbers shape{n, n};
      const Layout rows = Layout::view(shape, Numbers{8 * n, 8}, ElementType::float64);
      const Layout columns = Layout::view(shape, Numbers{8, 8 * n}, ElementType::float64);
      auto* const at = reinterpret_cast<std::byte*>(data.data());
      for (const bool strided_sender : {false, true}) {
        if (endpoint.rank() == 0) {
          std::iota(data.begin(), data.end(), 0.0);
          endpoint.send(to(endpoint, 1, 1, {strided_sender ? columns : rows, at}), {});
        } else {
          endpoint.receive(from(endpoint, 0, 1, {strided_sender ? rows : columns, at}), {});
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j)
              ASSERT_EQ(data[static_cast<std::size_t>(i * n + j)], static_cast<double>(j * n + i));
        }
      }
    }
  });
}

TEST(Endpoint, RefusesOtherElementsAndLongerMessages) {
  for (const std::size_t count : {10, 100000}) {
    as_ranks(2, [count](Endpoint& endpoint) {
      std::vector<double> data = numbers(count, 0);
      const auto bytes = static_cast<std::int64_t>(count);
      if (endpoint.rank() == 0) {
        endpoint.send(to(endpoint, 1, 1, place_of(data)), {});
        const auto refused = [&] { endpoint.send(to(endpoint, 1, 2, place_of(data)), {}); };
        if (count > 1024) {
          EXPECT_EQ(code_of(refused), Errc::invalid_argument);
        } else {
          refused();
        }
        endpoint.send(to(endpoint, 1, 3, place_of(data)), {});
      } else {
        auto* const at = reinterpret_cast<std::byte*>(data.data());
        const MessageBuffer shorter{Layout::contiguous(bytes - 1, ElementType::float64), at};
        try {
          endpoint.receive(from(endpoint, 0, 1, shorter), {});
          ADD_FAILURE();
        } catch (const Error& error) {
          const std::string text = error.what();
          EXPECT_NE(text.find(std::to_string(8 * count)), std::string::npos) << text;
          EXPECT_NE(text.find(std::to_string(8 * (count - 1))), std::string::npos) << text;
        }
        const MessageBuffer others{Layout::contiguous(bytes, ElementType::int64), at};
        EXPECT_EQ(code_of([&] { endpoint.receive(from(endpoint, 0, 2, others), {}); }),
                  Errc::invalid_argument);
        EXPECT_EQ(endpoint.receive(from(endpoint, 0, 3, place_of(data)), {}).bytes, 8 * count);
      }
    });
  }
}

TEST(Endpoint, AReceiveMayBeLongerThanTheMessage) {
  as_ranks(2, [](Endpoint& endpoint) {
    for (const std::size_t count : {0, 5, 5000}) {
      std::vector<double> data = numbers(count + 3 * static_cast<std::size_t>(endpoint.rank()), 1);
      if (endpoint.rank() == 0) {
        endpoint.send(to(endpoint, 1, 1, place_of(data)), {});
        continue;
      }
      std::fill(data.begin(), data.end(), -1.0);
      EXPECT_EQ(endpoint.receive(from(endpoint, 0, 1, place_of(data)), {}).bytes, 8 * count);
      EXPECT_EQ(data[count], -1.0);
    }
  });
}

TEST(Endpoint, SendsToItself) {
  as_ranks(1, [](Endpoint& endpoint) {
    for (const std::size_t count : {0, 4, 200000}) {
      std::vector<double> data = numbers(count, 3), early(count), late(count);
      const auto waiting =
          endpoint.start_receive(from(endpoint, any_source, any_tag, place_of(early)));
      endpoint.send(to(endpoint, 0, 1, place_of(data)), {});
      endpoint.send(to(endpoint, 0, 2, place_of(data)), {});
      EXPECT_EQ(endpoint.wait(waiting, {}).tag, 1);
      EXPECT_EQ(endpoint.receive(from(endpoint, 0, 2, place_of(late)), {}).bytes, 8 * count);
      EXPECT_EQ(early, data);
      EXPECT_EQ(late, data);
    }
  });
}

TEST(Endpoint, ManySendsToARankThatReadsLate) {
  as_ranks(2, [](Endpoint& endpoint) {
    constexpr std::size_t count = 900;  // Of 8 KB: more than the ring and what is kept aside.
    std::vector<std::vector<double>> data;
    std::vector<TransferPtr> transfers;
    for (std::size_t i = 0; i < count; ++i)
      data.push_back(numbers(i % 5 == 4 ? 3000 : 1000, static_cast<double>(i)));
    const int other = 1 - endpoint.rank();
    for (std::size_t i = 0; i < count; ++i)
      transfers.push_back(
          endpoint.start_send(to(endpoint, other, static_cast<int>(i), place_of(data[i]))));
    for (std::size_t i = count; i-- > 0;) {
      std::vector<double> got(data[i].size());
      endpoint.receive(from(endpoint, other, static_cast<int>(i), place_of(got)), {});
      ASSERT_EQ(got, data[i]);
    }
    for (const TransferPtr& each : transfers) endpoint.wait(each, {});
  });
}

TEST(Endpoint, LargeMessagesMoveWhileTheirOwnersCompute) {
  as_ranks(2, [](Endpoint& endpoint) {
    std::vector<double> data = numbers(500000, 0), other(data.size());
    for (const bool strided : {false, true}) {
      const auto count = static_cast<std::int64_t>(data.size()) / (strided ? 2 : 1);
      const Layout layout = Layout::vector(count, 1, strided ? 2 : 1, ElementType::float64);
      auto* const at = reinterpret_cast<std::byte*>((endpoint.rank() == 0 ? data : other).data());
      const TransferPtr transfer = endpoint.rank() == 0
                                       ? endpoint.start_send(to(endpoint, 1, 4, {layout, at}))
                                       : endpoint.start_receive(from(endpoint, 0, 4, {layout, at}));
      // Computes: makes no call until the message is there. A test that hangs fails by its limit.
      while (!transfer->done.load(std::memory_order_acquire)) std::this_thread::yield();
      endpoint.wait(transfer, {});
      if (endpoint.rank() == 1) {
        EXPECT_EQ(other[499998], data[499998]);
      }
    }
  });
}

TEST(Endpoint, ADeadlineSaysWhatEachRankWaitsFor) {
  as_ranks(2, [](Endpoint& endpoint) {
    std::vector<double> data(3);
    if (endpoint.rank() == 1) return endpoint.send(to(endpoint, 0, 1, place_of(data)), {});
    try {
      endpoint.receive(from(endpoint, 1, 5, place_of(data)), {0.1, {}});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::deadline);
      const std::string text = error.what();
      EXPECT_NE(text.find("rank 0: recv from rank 1, tag 5"), std::string::npos) << text;
    }
    endpoint.receive(from(endpoint, 1, 1, place_of(data)), {});
  });
}

TEST(Endpoint, ASendThatGivesUpIsNeverReceived) {
  as_ranks(2, [](Endpoint& endpoint) {
    std::vector<double> data = numbers(50000, 1);
    if (endpoint.rank() == 0) {
      EXPECT_EQ(code_of([&] {
                  endpoint.send(to(endpoint, 1, 1, place_of(data)), {0.02, {}});
                }),
                Errc::deadline);
      const std::vector<double> before = std::exchange(data, numbers(50000, 2));
      endpoint.send(to(endpoint, 1, 2, place_of(data)), {});
      endpoint.send(to(endpoint, 1, 1, place_of(data)), {});
    } else {
      std::vector<double> got(data.size());
      endpoint.receive(from(endpoint, 0, 2, place_of(got)), {});
      const auto found = endpoint.probe(from(endpoint, 0, 1, {}), Patience{});
      ASSERT_TRUE(found);
      EXPECT_EQ(found->bytes, 8 * got.size());
      endpoint.receive(from(endpoint, 0, 1, place_of(got)), {});
      EXPECT_EQ(got[0], 2);
    }
  });
}

// A deadline that meets an arrival either fails, and the message is there for the next receive, or
// doesn't.
TEST(Endpoint, DeadlinesThatRaceWithArrivalsLoseNothing) {
  as_ranks(2, [](Endpoint& endpoint) {
    constexpr int rounds = 300;
    std::vector<double> data(1500), done(1);
    for (int i = 0; i < rounds; ++i) {
      data[0] = i;
      if (endpoint.rank() == 0) {
        endpoint.send(to(endpoint, 1, 1, place_of(data)), {});
        continue;
      }
      while (true) {
        data[0] = -1;
        const Patience brief{static_cast<double>(i % 7) * 1e-5, {}};
        const Errc code = code_of(
            [&] { endpoint.receive(from(endpoint, any_source, any_tag, place_of(data)), brief); });
        if (code != Errc::deadline) break;
      }
      ASSERT_EQ(data[0], i);
    }
  });
}

TEST(Endpoint, SeveralThreadsOfARankCallAtOnce) {
  as_ranks(2, [](Endpoint& endpoint) {
    std::vector<std::thread> threads;
    for (int tag = 0; tag < 3; ++tag)
      threads.emplace_back([&endpoint, tag] {
        for (int i = 0; i < 100; ++i) {
          const std::size_t count = i % 10 == 0 ? 20000 : 10;
          std::vector<double> mine = numbers(count, i), theirs(count);
          const int other = 1 - endpoint.rank();
          const auto arriving =
              endpoint.start_receive(from(endpoint, other, tag, place_of(theirs)));
          endpoint.send(to(endpoint, other, tag, place_of(mine)), {});
          endpoint.wait(arriving, {});
          ASSERT_EQ(theirs, mine);
        }
      });
    for (std::thread& each : threads) each.join();
  });
}

TEST(Endpoint, ARankThatLeavesIsNamedAndItsMessagesArrive) {
  as_ranks(3, [](Endpoint& endpoint) {
    std::vector<double> data = numbers(4, 0);
    if (endpoint.rank() == 0) {
      endpoint.send(to(endpoint, 1, 1, place_of(data)), {});
      EXPECT_EQ(endpoint.close({1, {}}), "");
      EXPECT_EQ(code_of([&] { endpoint.send(to(endpoint, 1, 1, place_of(data)), {}); }),
                Errc::unavailable);
      return;
    }
    if (endpoint.rank() == 1) {
      try {
        endpoint.receive(from(endpoint, 0, 2, place_of(data)), {});
        ADD_FAILURE();
      } catch (const PeerLost& error) {
        EXPECT_EQ(error.rank(), 0);
        EXPECT_STREQ(error.what(), "recv from rank 0, tag 2: rank 0 has left the communicator");
      }
      endpoint.receive(from(endpoint, 0, 1, place_of(data)), {});
      endpoint.receive(from(endpoint, any_source, 3, place_of(data)), {});  // Rank 2 is here.
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      endpoint.send(to(endpoint, 1, 3, place_of(data)), {});
    }
  });
}

TEST(Endpoint, ClosingSaysWhichSendsNobodyReceived) {
  Endpoints all = local_endpoints(2);
  std::vector<double> data(100000);
  const TransferPtr sent = all[0]->start_send(to(*all[0], 1, 9, place_of(data)));
  EXPECT_EQ(all[0]->close({0.01, {}}), "closed before these were received: send to rank 1, tag 9");
  EXPECT_EQ(code_of([&] { all[0]->wait(sent, {}); }), Errc::cancelled);
  EXPECT_EQ(code_of([&] { all[1]->receive(from(*all[1], 0, 9, place_of(data)), {}); }),
            Errc::peer_lost);
}

TEST(Endpoint, AnInterruptEndsAWaitWithinItsSlices) {
  as_ranks(2, [](Endpoint& endpoint) {
    if (endpoint.rank() == 1) return;
    std::vector<double> data(100000);
    struct Stop {};
    int calls = 0;
    const auto stop = [&] {
      if (++calls == 2) throw Stop();
    };
    EXPECT_THROW(endpoint.receive(from(endpoint, 0, 1, place_of(data)), {-1, stop}), Stop);
    calls = 0;
    EXPECT_EQ(endpoint.probe(from(endpoint, 0, 1, {}), std::nullopt), std::nullopt);
  });
}

TEST(Endpoint, RefusedStridedMessagesEndForTheSenderToo) {
  as_ranks(2, [](Endpoint& endpoint) {
    // More than the piece ring holds; the sender polls while the receiver refuses.
    for (int round = 0; round < 20; ++round) {
      std::vector<double> data(200000);
      auto* const at = reinterpret_cast<std::byte*>(data.data());
      const MessageBuffer strided{Layout::vector(100000, 1, 2, ElementType::float64), at};
      const MessageBuffer others{Layout::contiguous(100000, ElementType::int64), at};
      const bool sends = endpoint.rank() == 0;
      EXPECT_EQ(code_of([&] {
                  sends
                      ? endpoint.send(to(endpoint, 1, 1, strided), {20, {}})
                      : static_cast<void>(endpoint.receive(from(endpoint, 0, 1, others), {20, {}}));
                }),
                Errc::invalid_argument);
    }
  });
}

TEST(Endpoint, LargeSendsToOneRankDoNotBlockThoseToAnother) {
  as_ranks(3, [](Endpoint& endpoint) {
    std::vector<double> data = numbers(2000, 0);
    std::vector<TransferPtr> sent;
    if (endpoint.rank() == 0) {
      for (int i = 0; i < 300; ++i)
        sent.push_back(endpoint.start_send(to(endpoint, 1, i, place_of(data))));
      endpoint.send(to(endpoint, 2, 1, place_of(data)), {20, {}});
      for (const TransferPtr& each : sent) endpoint.wait(each, {20, {}});
    } else if (endpoint.rank() == 2) {
      endpoint.receive(from(endpoint, 0, 1, place_of(data)), {20, {}});
      endpoint.send(to(endpoint, 1, 0, place_of(data)), {20, {}});
    } else {
      endpoint.receive(from(endpoint, 2, 0, place_of(data)), {20, {}});
      for (int i = 0; i < 300; ++i)
        endpoint.receive(from(endpoint, 0, i, place_of(data)), {20, {}});
    }
  });
}

TEST(Endpoint, GivingUpManyTimesLeavesTheRankAbleToSend) {
  as_ranks(2, [](Endpoint& endpoint) {
    std::vector<double> data(200000);
    auto* const at = reinterpret_cast<std::byte*>(data.data());
    const MessageBuffer strided{Layout::vector(100000, 1, 2, ElementType::float64), at};
    std::vector<TransferPtr> arriving;
    for (int i = 0; i < 40; ++i) {
      if (endpoint.rank() == 0) {
        const TransferPtr sent = endpoint.start_send(to(endpoint, 1, i, strided));
        for (int tries = 0; tries < 3 * i && !sent->done; ++tries) endpoint.test(sent);
        endpoint.withdraw(sent);
      } else {
        const TransferPtr one = endpoint.start_receive(from(endpoint, 0, i, strided));
        try {
          endpoint.wait(one, {i % 2 == 0 ? 0.02 : 0.001, {}});
        } catch (const Error&) {
          endpoint.withdraw(one);
        }
      }
    }
    if (endpoint.rank() == 0)
      endpoint.send(to(endpoint, 1, 100, strided), {20, {}});
    else
      endpoint.receive(from(endpoint, 0, 100, strided), {20, {}});
  });
}

TEST(Endpoint, AProbeSeesWhatIsBehindManyMessages) {
  as_ranks(2, [](Endpoint& endpoint) {
    constexpr int count = 1500;  // Of 8 KB: more than is kept aside.
    std::vector<double> data(1000);
    std::vector<TransferPtr> sent;
    if (endpoint.rank() == 0) {
      for (int i = 0; i <= count; ++i)
        sent.push_back(endpoint.start_send(to(endpoint, 1, i == count ? 2 : 1, place_of(data))));
      for (const TransferPtr& each : sent) endpoint.wait(each, {20, {}});
    } else {
      EXPECT_TRUE(endpoint.probe(from(endpoint, any_source, 2, {}), Patience{20, {}}));
      for (int i = 0; i <= count; ++i)
        endpoint.receive(from(endpoint, 0, any_tag, place_of(data)), {20, {}});
    }
  });
}

TEST(Endpoint, NobodyLeftToReceiveFromIsAnError) {
  Endpoints all = local_endpoints(3);
  std::vector<double> data(1);
  all[1]->close({0, {}});
  EXPECT_EQ(all[0]->probe(from(*all[0], any_source, 1, {}), std::nullopt), std::nullopt);
  all[2]->close({0, {}});
  const auto receive = [&] {
    all[0]->receive(from(*all[0], any_source, 1, place_of(data)), {20, {}});
  };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(code_of(receive), Errc::peer_lost);
  EXPECT_EQ(code_of([&] {
              all[0]->probe(from(*all[0], any_source, 1, {}), Patience{20, {}});
            }),
            Errc::peer_lost);
}

// The system makes a page at its first touch, which takes longer than a message of 8 bytes.
TEST(Endpoint, ShortMessagesTouchFewPages) {
  const auto segment = SharedSegment::local(2);
  RingWriter writer(segment->message_ring(1, 0), segment->shape().messages);
  RingReader reader(segment->message_ring(1, 0), segment->shape().messages);
  const std::uint32_t slots = writer.slots();
  std::vector<const std::byte*> places;
  for (std::uint32_t i = 0; i < 2 * slots; ++i) {
    const bool is_large = i % slots == 1;
    std::byte* const at = is_large ? writer.reserve() : writer.reserve(64);
    ASSERT_NE(at, nullptr);
    std::memset(at, static_cast<int>(i), is_large ? writer.capacity() : 64);
    EXPECT_EQ(reader.front(), nullptr);
    writer.publish();
    ASSERT_EQ(reader.front(), at);
    EXPECT_EQ(at[63], static_cast<std::byte>(i));
    if (!is_large) places.push_back(at);
    reader.pop();
  }
  const auto [first, last] = std::ranges::minmax(places);
  EXPECT_LT(last - first, std::ptrdiff_t{12} * 4096) << "of 64 slots";
}

// What another rank writes wrongly ends that rank's link only.
TEST(Endpoint, AnEnvelopeThatIsNotValidEndsTheLink) {
  const auto segment = SharedSegment::local(2);
  Endpoint endpoint(segment, 0, {{-1, -1, -1}, {-1, -1, -1}});
  Random random(3);
  RingWriter writer(segment->message_ring(1, 0), segment->shape().messages);
  std::vector<double> data(10);
  for (int i = 0; i < 64; ++i) {
    std::byte* const at = writer.reserve();
    if (at == nullptr) break;
    for (std::size_t byte = 0; byte < 64; ++byte) at[byte] = static_cast<std::byte>(random());
    writer.publish();
  }
  EXPECT_EQ(code_of([&] {
              endpoint.receive(from(endpoint, 1, 1, place_of(data)), {5, {}});
            }),
            Errc::peer_lost);
}

}  // namespace
}  // namespace quadriga::message::testing
