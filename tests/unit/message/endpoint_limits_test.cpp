// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/endpoint_limits_test.cpp: what is bounded, and what others can't disturb.
#include <gtest/gtest.h>
#include <poll.h>
#include <quadriga/error.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>

#include "message/endpoint.h"
#include "message/waiting.h"
#include "message/wire/claims.h"
#include "unit/message/endpoints.h"

namespace quadriga::message::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Whether a transfer ends without any call of its rank.
bool ends_by_itself(const MessageTransfer& transfer) {
  const auto until = Clock::now() + std::chrono::seconds(240);
  while (!transfer.done.load(std::memory_order_acquire)) {
    if (Clock::now() > until) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

TEST(EndpointLimits, AWakingThatIsLostDelaysALargeMessageOnly) {
  const auto segment = SharedSegment::local(2);
  Endpoints all;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<Member> members(2);
    for (Member& each : members) each.pid = getpid();
    members[static_cast<std::size_t>(rank)].event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    // The other rank's event stays -1: it disarms a bell, and never comes to write to the event.
    all.push_back(std::make_shared<Endpoint>(segment, rank, std::move(members)));
  }
  std::vector<double> sent(100'000, 3), received(sent.size());
  const auto sending = all[0]->start_send(to(*all[0], 1, 1, place_of(sent)));
  const auto receiving = all[1]->start_receive(from(*all[1], 0, 1, place_of(received)));
  EXPECT_TRUE(ends_by_itself(*receiving));
  EXPECT_TRUE(ends_by_itself(*sending));
  EXPECT_EQ(received, sent);
}

/// The signals that each thread that moves messages blocks.
std::vector<std::uint64_t> blocked_by_service_threads() {
  std::vector<std::uint64_t> blocked;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    if (name != "quadriga peers") continue;
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:")) blocked.push_back(std::stoull(line.substr(7), nullptr, 16));
  }
  return blocked;
}

bool blocks(std::uint64_t blocked, int signal) { return (blocked >> (signal - 1) & 1) != 0; }

TEST(EndpointLimits, SignalsAreTheProgramsAlone) {
  const Endpoints all = local_endpoints(2);
  std::vector<std::uint64_t> each_blocks;
  const auto until = Clock::now() + std::chrono::seconds(240);
  // Threads name themselves as they begin.
  do each_blocks = blocked_by_service_threads();
  while (each_blocks.size() < 2 && Clock::now() < until);
  ASSERT_EQ(each_blocks.size(), 2u) << "a rank's thread";
  for (const std::uint64_t blocked : each_blocks) {
    for (const int each : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD})
      EXPECT_TRUE(blocks(blocked, each)) << "signal " << each;
    EXPECT_FALSE(blocks(blocked, SIGSEGV));
  }
}

TEST(EndpointLimits, AskingForWhatIsThereReadsNoFurther) {
  Endpoints all = local_endpoints(2);
  std::vector<double> data(1000);
  std::vector<TransferPtr> sent;
  for (int i = 0; i < 3000; ++i)  // 24 MB
    sent.push_back(all[0]->start_send(to(*all[0], 1, 1, place_of(data))));
  for (int i = 0; i < 3000; ++i) {
    EXPECT_TRUE(all[1]->probe(question(*all[1], 0, any_tag), std::nullopt) || i == 0);
    all[0]->test(sent.back());
  }
  const auto is_done = [](const TransferPtr& each) { return each->done.load(); };
  const auto gone = std::ranges::count_if(sent, is_done);
  EXPECT_LT(static_cast<std::size_t>(gone) * data.size() * sizeof(double), 2 * most_unexpected);
  // A tag that isn't there is looked for behind all of them.
  for (int i = 0; i < 3000; ++i) {
    all[1]->probe(question(*all[1], 0, 2), std::nullopt);
    all[0]->test(sent.back());
  }
  EXPECT_EQ(std::ranges::count_if(sent, is_done), 3000);
}

TEST(EndpointLimits, ADeadlineCountsFromItsCallsBegin) {
  Endpoints all = local_endpoints(2);
  std::vector<double> data(1);
  const auto receiving = all[0]->start_receive(from(*all[0], 1, 1, place_of(data)));
  const auto begin = Clock::now();
  Patience patience{3600, {}, begin - std::chrono::hours(2)};
  try {
    all[0]->wait(receiving, patience);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::deadline);
    EXPECT_NE(std::string(error.what()).find("within 3600 s"), std::string::npos) << error.what();
  }
  all[0]->cancel(receiving);
}

TEST(EndpointLimits, ManyOffersThatWereWithdrawnAreForgotten) {
  Endpoints all = local_endpoints(2);
  std::vector<double> data(2000, 5), got(data.size());
  for (std::uint32_t i = 0; i < 3 * claims_per_pair; ++i) {
    const auto each = all[0]->start_send(to(*all[0], 1, 1, place_of(data)));
    EXPECT_TRUE(all[0]->cancel(each));
    if (i % 16 != 0) continue;
    EXPECT_FALSE(all[1]->probe(question(*all[1], 0, 2), std::nullopt));
  }
  const auto last = all[0]->start_send(to(*all[0], 1, 1, place_of(data)));
  all[1]->receive(from(*all[1], 0, 1, place_of(got)), {20, {}});
  EXPECT_EQ(got, data);
  all[0]->wait(last, {20, {}});
}

TEST(EndpointLimits, BegunSendsAreKeptIfAsked) {
  // The other rank is this test.
  const auto segment = SharedSegment::local(2);
  Endpoint endpoint(segment, 0, {{-1, -1, -1}, {-1, -1, -1}});
  const Claims claims(*segment, 0);
  std::vector<double> data(200000);
  const auto early = endpoint.start_send(to(endpoint, 1, 1, place_of(data)));
  EXPECT_TRUE(endpoint.cancel(early, BegunSends::kept));
  for (const ClaimState state : {ClaimState::claimed, ClaimState::wanted}) {
    const auto sent = endpoint.start_send(to(endpoint, 1, 2, place_of(data)));
    ASSERT_TRUE(claims.change(sent->claim, ClaimState::offered, ClaimState::claimed));
    if (state == ClaimState::wanted) {
      ASSERT_TRUE(claims.change(sent->claim, ClaimState::claimed, ClaimState::wanted));
    }
    EXPECT_FALSE(endpoint.cancel(sent, BegunSends::kept));
    EXPECT_FALSE(sent->done);
    EXPECT_EQ(claims.state(sent->claim), state);
    EXPECT_TRUE(endpoint.cancel(sent));
  }
}

// A rank that writes what no rank of ours writes.
class Hostile {
 public:
  Hostile()
      : segment_(SharedSegment::local(2)),
        endpoint_(segment_, 0, {{-1, -1, -1}, {-1, -1, -1}}),
        writer_(segment_->message_ring(1, 0), segment_->shape().messages) {}
  // How many the endpoint takes until it has enough of them.
  int write(const std::function<void(int, Envelope&, std::byte*)>& fill, int most) {
    for (int i = 0; i < most; ++i) {
      std::byte* at = writer_.reserve();
      if (at == nullptr) {
        if (code_of([&] { look(); }) == Errc::peer_lost) return i;
        at = writer_.reserve();
        if (at == nullptr) return i;
      }
      Envelope envelope;
      fill(i, envelope, at + sizeof envelope);
      std::memcpy(at, &envelope, sizeof envelope);
      writer_.publish();
    }
    return most;
  }
  Claims claims() const { return {*segment_, 1}; }

 private:
  void look() { endpoint_.probe(question(endpoint_, 1, 3), std::nullopt); }
  std::shared_ptr<SharedSegment> segment_;
  Endpoint endpoint_;
  RingWriter writer_;
};

TEST(EndpointLimits, ARankThatAbortsWithoutEndIsLost) {
  Hostile other;
  const int taken = other.write(
      [](int i, Envelope& envelope, std::byte*) {
        envelope.context = static_cast<std::uint64_t>(i) + 100;
        envelope.kind = EnvelopeKind::abort;
        envelope.tag = 0;
      },
      static_cast<int>(3 * most_aborts));
  EXPECT_LT(taken, static_cast<int>(2 * most_aborts));
}

TEST(EndpointLimits, ARankThatOffersOneMessageWithoutEndIsLost) {
  Hostile other;
  other.claims().offer({0, 1});
  const int taken = other.write(
      [](int, Envelope& envelope, std::byte* content) {
        const Offer offer{1 << 20, 4096, 0, 1};
        envelope.context = 1;
        envelope.kind = EnvelopeKind::offer;
        envelope.tag = 1;
        envelope.bytes = sizeof offer;
        std::memcpy(content, &offer, sizeof offer);
      },
      8 * static_cast<int>(claims_per_pair));
  EXPECT_LT(taken, 4 * static_cast<int>(claims_per_pair));
}

// An end is seen late by at most a fiftieth of the wait, once a wait is long enough to sleep.
TEST(Waiting, NapsAreASmallPartOfTheWait) {
  using namespace std::chrono_literals;
  for (std::chrono::nanoseconds quiet = 500us; quiet < 10s; quiet += quiet / 3) {
    EXPECT_LE(50 * nap_after(quiet), quiet) << quiet.count();
    EXPECT_GE(nap_after(quiet), 5us);
    EXPECT_LE(nap_after(quiet), 50us);
  }
}

}  // namespace
}  // namespace quadriga::message::testing
