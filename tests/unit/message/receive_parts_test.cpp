// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/receive_parts_test.cpp: each part of a rank's receiving side by itself: what
// lies aside, pieces, reads of another's memory, what devices still do, and how transfers end.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "message/device_moves.h"
#include "message/host_reads.h"
#include "message/moving_receives.h"
#include "message/piece_receives.h"
#include "message/postbox.h"
#include "unit/message/endpoints.h"

namespace quadriga::message::testing {
namespace {

// Rank 0's view of rank 1, whose words and rings the test writes.
struct Receiving {
  std::shared_ptr<SharedSegment> segment = SharedSegment::local(2);
  PeerLinks links = [this] {
    PeerLinks made;
    for (const int other : {0, 1}) made.emplace_back(*segment, 0, other, -1);
    return made;
  }();
  TransferEnds ends;
  Postbox postbox{links};
  MovingReceives moves{links, ends};
  PieceReceives pieces{links, ends, moves};
  HostReads reads{links, ends, moves, pieces};
  const Claims sender{*segment, 1};
  RingWriter ring{segment->piece_ring(1, 0), segment->shape().pieces};
  std::vector<double> got = std::vector<double>(1000, -1);
  std::vector<double> sent = std::vector<double>(1000, 3);

  PeerLink& link() { return links[1]; }
  // A receive of a claimed message of rank 1.
  TransferPtr claimed(const MessageBuffer& place, ClaimState state = ClaimState::claimed) {
    Posting posting;
    posting.place = place;
    posting.peer = 1;
    posting.operation = CallKind::recv;
    posting.group = std::make_shared<Group>(Group{{0, 1}, 0});
    const TransferPtr made = transfer_of(posting, false);
    made->sender = 1;
    made->claim = {claims_per_pair, 1};
    made->expected = sent.size() * sizeof(double);
    made->address = reinterpret_cast<std::uintptr_t>(sent.data());
    sender.offer(made->claim);
    if (state != ClaimState::offered) sender.change(made->claim, ClaimState::offered, state);
    return made;
  }
  void send_piece(std::size_t offset, std::size_t bytes, std::uint32_t number = 1) {
    std::byte* const at = ring.reserve();
    ASSERT_NE(at, nullptr);
    const PieceHead head{claims_per_pair, number, offset, bytes};
    std::memcpy(at, &head, sizeof head);
    std::memcpy(at + sizeof head, reinterpret_cast<const std::byte*>(sent.data()) + offset, bytes);
    ring.publish();
  }
  ClaimState state() const { return sender.state({claims_per_pair, 1}); }
};

Errc error_of(const TransferPtr& transfer) {
  if (!transfer->done || !transfer->error) return Errc::internal;
  try {
    std::rethrow_exception(transfer->error);
  } catch (const Error& error) {
    return error.code();
  }
}

Arrival whole(std::size_t bytes) {
  Arrival arrival;
  arrival.source = 1;
  arrival.bytes = bytes;
  return arrival;
}

const Address anybody{0, 1, 0};

TEST(ReceiveParts, RoomForMessagesThatNobodyAskedForComesBackOnceTheyAreReceived) {
  Receiving at;
  const std::vector<std::byte> content(4000);
  // Twice: what was received takes no room any more, envelopes included.
  for (int round = 0; round < 2; ++round) {
    int aside = 0;
    for (; at.postbox.has_room(1); ++aside)
      at.postbox.add_whole(anybody, whole(4000), content.data());
    EXPECT_GT(aside, 900);
    at.postbox.begin_probe(any_source);
    EXPECT_TRUE(at.postbox.has_room(1)) << "a probe waits for what is behind";
    at.postbox.end_probe(any_source);
    EXPECT_FALSE(at.postbox.has_room(1));
    for (; aside > 0; --aside) ASSERT_TRUE(at.postbox.take_message(anybody));
    EXPECT_FALSE(at.postbox.take_message(anybody));
    EXPECT_EQ(at.link().unexpected_bytes, 0U);
  }
}

TEST(ReceiveParts, ASenderLeavesAsManyOffersAsideAsItHasClaims) {
  Receiving at;
  const auto offer = [&](std::uint32_t number) {
    Arrival arrival = whole(100'000);
    arrival.envelope.kind = EnvelopeKind::offer;
    arrival.offer.index = claims_per_pair + number % claims_per_pair;
    arrival.offer.number = 1 + number / claims_per_pair;
    at.sender.offer(arrival.claim());
    return at.postbox.add_offer(anybody, std::move(arrival));
  };
  // Each use of a claim ends the one before it: these were withdrawn.
  for (std::uint32_t i = 0; i < 10 * claims_per_pair; ++i) ASSERT_TRUE(offer(i)) << i;
  EXPECT_LE(at.link().offers, 2 * claims_per_pair);
}

TEST(ReceiveParts, LargeReceivesAreCountedWhileTheyWait) {
  Receiving at;
  std::vector<double> little(3);
  const TransferPtr small = at.claimed(place_of(little)), large = at.claimed(place_of(at.got));
  at.postbox.add_receive(small);
  EXPECT_FALSE(at.postbox.has_large());
  at.postbox.add_receive(large);
  EXPECT_TRUE(at.postbox.has_large());
  EXPECT_TRUE(at.postbox.remove(large));
  EXPECT_FALSE(at.postbox.remove(large));
  EXPECT_FALSE(at.postbox.has_large());
  EXPECT_EQ(at.postbox.receives(), std::vector<TransferPtr>{small});
}

TEST(ReceiveParts, PiecesFollowEachOther) {
  Receiving at;
  const TransferPtr transfer = at.claimed(place_of(at.got));
  at.pieces.want(transfer);
  EXPECT_EQ(at.state(), ClaimState::wanted);
  at.send_piece(0, 4000);
  at.send_piece(0, 100, 9);  // Of a receive that gave up.
  EXPECT_TRUE(at.pieces.advance(1, at.link()));
  EXPECT_FALSE(transfer->done);
  at.send_piece(4000, 4000);
  EXPECT_TRUE(at.pieces.advance(1, at.link()));
  EXPECT_TRUE(transfer->done && !transfer->error);
  EXPECT_EQ(at.got, at.sent);
  EXPECT_TRUE(at.pieces.empty());
}

TEST(ReceiveParts, APieceThatDoesntFollowIsntBelieved) {
  for (const std::size_t offset : {8, 4008}) {
    Receiving at;
    const TransferPtr transfer = at.claimed(place_of(at.got));
    at.pieces.want(transfer);
    at.send_piece(0, 4000);
    at.send_piece(offset, 1000);
    at.pieces.advance(1, at.link());
    EXPECT_FALSE(at.link().is_believed);
    EXPECT_EQ(at.link().reason, "sent a piece that doesn't follow");
    // It is lost then: nothing more of it is read.
    at.link().presence = Presence::lost;
    EXPECT_TRUE(at.pieces.end_of_gone(1, at.link()));
    EXPECT_EQ(error_of(transfer), Errc::peer_lost);
  }
}

TEST(ReceiveParts, PiecesOfAGoneSenderArriveAndThoseOfOneThatGaveUpDont) {
  Receiving at;
  const TransferPtr transfer = at.claimed(place_of(at.got));
  at.pieces.want(transfer);
  at.send_piece(0, 8000);
  at.link().presence = Presence::lost;
  at.pieces.drop(1, [](const MessageTransfer&) { return std::exception_ptr(); });
  EXPECT_FALSE(transfer->done) << "its ring wasn't read";
  at.pieces.advance(1, at.link());
  EXPECT_TRUE(transfer->done && !transfer->error);

  Receiving other;
  const TransferPtr given_up = other.claimed(place_of(other.got));
  other.pieces.want(given_up);
  other.sender.change(given_up->claim, ClaimState::wanted, ClaimState::abandoned);
  other.pieces.advance(1, other.link());
  EXPECT_EQ(error_of(given_up), Errc::cancelled);
  EXPECT_EQ(other.state(), ClaimState::done) << "it isn't acknowledged";
}

TEST(ReceiveParts, MemoryOfAProcessIsRead) {
  Receiving at;
  at.link().pid = getpid();  // Of this one: its descriptor is that of no other.
  const TransferPtr transfer = at.claimed(place_of(at.got));
  at.reads.add(transfer);
  while (!at.reads.empty()) EXPECT_TRUE(at.reads.advance());
  EXPECT_TRUE(transfer->done && !transfer->error);
  EXPECT_EQ(at.got, at.sent);
  EXPECT_EQ(at.state(), ClaimState::done);
  // Of elements apart.
  std::vector<double> spread(2000, -1);
  const TransferPtr apart = at.claimed({Layout::vector(1000, 1, 2, ElementType::float64),
                                        reinterpret_cast<std::byte*>(spread.data())});
  at.reads.add(apart);
  while (!at.reads.empty()) EXPECT_TRUE(at.reads.advance());
  for (std::size_t i = 0; i < spread.size(); ++i) ASSERT_EQ(spread[i], i % 2 == 0 ? 3 : -1);
}

TEST(ReceiveParts, WhatASenderTookBackWhileItWasReadWasntReceived) {
  Receiving at;
  at.link().pid = getpid();
  const TransferPtr transfer = at.claimed(place_of(at.got), ClaimState::withdrawn);
  at.reads.add(transfer);
  EXPECT_TRUE(at.reads.advance());
  EXPECT_EQ(error_of(transfer), Errc::cancelled);
  EXPECT_TRUE(at.reads.empty());
}

TEST(ReceiveParts, MemoryThatCantBeReadComesInPieces) {
  Receiving at;
  at.link().pid = getpid();
  const TransferPtr transfer = at.claimed(place_of(at.got));
  transfer->address = 8;
  at.reads.add(transfer);
  EXPECT_TRUE(at.reads.advance());
  EXPECT_FALSE(at.link().can_read);
  EXPECT_EQ(at.state(), ClaimState::wanted);
  EXPECT_FALSE(at.pieces.empty());
  EXPECT_TRUE(at.pieces.cancel(transfer));
  EXPECT_EQ(at.state(), ClaimState::discarded);
}

// What a device copies, in three looks.
class ThreeLooks : public DeviceMove {
 public:
  bool advance() override { return ++looks_ <= 3; }
  bool has_ended() override { return looks_ >= 3; }

 private:
  int looks_ = 0;
};

TEST(ReceiveParts, AClaimIsDoneOnceTheDeviceHasReadIt) {
  Receiving at;
  const TransferPtr transfer = at.claimed(place_of(at.got));
  transfer->copier = std::make_shared<ThreeLooks>();
  at.moves.add(transfer);
  for (int look = 0; look < 2; ++look) EXPECT_TRUE(at.moves.advance());
  EXPECT_EQ(at.state(), ClaimState::claimed);
  EXPECT_TRUE(at.moves.advance());
  EXPECT_EQ(at.state(), ClaimState::done);
  EXPECT_TRUE(transfer->done && !transfer->error && at.moves.empty());
  const TransferPtr taken = at.claimed(place_of(at.got), ClaimState::withdrawn);
  taken->copier = std::make_shared<ThreeLooks>();
  at.moves.add(taken);
  EXPECT_TRUE(at.moves.advance());
  EXPECT_EQ(error_of(taken), Errc::cancelled);
}

// What is let go, and what is logged, may run code of the program's.
TEST(ReceiveParts, WhatEndedTransfersLeaveIsTakenWithoutTheLock) {
  std::string said;
  set_log_sink([&](LogLevel, std::string_view message) { said += message; });
  {
    Receiving at;
    const TransferPtr led = at.claimed(place_of(at.got));
    const auto kept = std::make_shared<int>(0);
    led->keep = kept;
    led->is_led = true;
    at.ends.end(*led, std::make_exception_ptr(Error(Errc::cancelled, "it was enough")));
    at.ends.note(LogLevel::warning, "; and more");
    EXPECT_TRUE(led->done && at.ends.take_any() && !at.ends.take_any());
    EXPECT_EQ(said, "");
    EXPECT_EQ(kept.use_count(), 2);
    at.ends.take_left();
    EXPECT_EQ(kept.use_count(), 1);
  }
  set_log_sink({});
  EXPECT_EQ(said,
            "recv from rank 1, tag 0, for which a stream waits, failed: it was enough; and more");
}

}  // namespace
}  // namespace quadriga::message::testing
