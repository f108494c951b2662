// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/stream_order_test.cpp: what waits for a message whose stream is busy, and what
// doesn't: receives, probes, messages to oneself, withdrawals, a communicator's end.
#include "message/stream_order.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "base/log.h"
#include "unit/message/device_numbers.h"
#include "unit/message/endpoints.h"

namespace quadriga::message::testing {
namespace {

// A stream of a device that is busy until it is let go.
class BusyStream {
 public:
  explicit BusyStream(std::shared_ptr<DevicePort> port, DeviceId device = 0)
      : port_(std::move(port)), device_(device), stream_(port_->streams().open(device)) {
    port_->streams().call(stream_, [free = gate_.get_future().share()] { free.wait(); });
  }
  ~BusyStream() { let_go(); }
  BusyStream(const BusyStream&) = delete;
  BusyStream& operator=(const BusyStream&) = delete;
  void let_go() {
    if (!std::exchange(is_free_, true)) gate_.set_value();
  }
  std::shared_ptr<StreamOrder> order(StreamSide side = StreamSide::before_and_after) const {
    return std::make_shared<StreamOrder>(port_, device_, stream_, side);
  }
  std::uintptr_t number() const noexcept { return stream_; }

 private:
  std::promise<void> gate_;
  const std::shared_ptr<DevicePort> port_;
  const DeviceId device_;
  const std::uintptr_t stream_;
  bool is_free_ = false;
};

struct Pair {
  Endpoints ends = local_endpoints(2);
  CommunicatorCore sender{ends[0]}, receiver{ends[1]};
  std::shared_ptr<DevicePort> port = emulated();
  BusyStream stream{port};
  Numbers numbers{port, 0, counted(10, 0)};
  std::vector<double> one = counted(3, 1), two = counted(4, 2), three = counted(5, 3);
};

// Also one that its stream waits for in its caller's place.
void arrive(Endpoint& endpoint, const TransferPtr& transfer) {
  endpoint.wait_any(std::span(&transfer, 1), enough);
  endpoint.wait(transfer, enough);
}

TEST(StreamOrder, OnlyReceivesOfTheSameMessagesWaitForEachOther) {
  Pair pair;
  const TransferPtr first =
      pair.receiver.start_receive(pair.numbers.place(), 0, 1, {}, pair.stream.order());
  std::vector<double> same(3), other(4), any(5);
  const TransferPtr behind = pair.receiver.start_receive(place_of(same), 0, 1);
  const TransferPtr apart = pair.receiver.start_receive(place_of(other), 0, 2);
  const TransferPtr wild = pair.receiver.start_receive(place_of(any), any_source, any_tag);
  pair.sender.send(place_of(pair.two), 1, 2, enough);
  EXPECT_EQ(pair.ends[1]->wait(apart, enough).tag, 2);
  EXPECT_EQ(other, pair.two);
  std::vector<double> ten = counted(10, 5);
  pair.sender.send(place_of(ten), 1, 1, enough);
  pair.sender.send(place_of(pair.one), 1, 1, enough);
  pair.sender.send(place_of(pair.three), 1, 3, enough);
  for (const TransferPtr& each : {first, behind, wild}) EXPECT_FALSE(pair.ends[1]->test(each));
  pair.stream.let_go();
  for (const TransferPtr& each : {first, behind, wild}) arrive(*pair.ends[1], each);
  EXPECT_EQ(pair.numbers.content(), ten);
  EXPECT_EQ(same, pair.one);
  EXPECT_EQ(any, pair.three);
}

TEST(StreamOrder, AProbeFindsWhatAReceiveWouldGetBehindThoseThatWait) {
  Pair pair;
  const TransferPtr first =
      pair.receiver.start_receive(pair.numbers.place(), 0, any_tag, {}, pair.stream.order());
  std::vector<double> ten = counted(10, 5);
  pair.sender.send(place_of(ten), 1, 1, enough);
  EXPECT_FALSE(pair.receiver.probe(0, 1, std::nullopt)) << "the first receive takes it";
  pair.sender.send(place_of(pair.two), 1, 1, enough);
  const auto found = pair.receiver.probe(any_source, any_tag, enough);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, pair.two.size() * sizeof(double));
  pair.stream.let_go();
  arrive(*pair.ends[1], first);
  std::vector<double> got(4);
  pair.receiver.receive(place_of(got), 0, 1, enough);
  EXPECT_EQ(got, pair.two);
  EXPECT_EQ(pair.numbers.content(), ten);
}

TEST(StreamOrder, AMessageToItselfWaitsForItsStreamNoLongerThanItMay) {
  Pair pair;
  const CommunicatorCore& comm = pair.sender;
  const Errc code = code_of([&] {
    comm.send(pair.numbers.place(), 0, 0, {0.02, {}}, pair.stream.order());
  });
  EXPECT_EQ(code, Errc::deadline);
  const TransferPtr sent = comm.start_send(pair.numbers.place(), 0, 0, {}, pair.stream.order());
  const TransferPtr later = comm.start_send(place_of(pair.one), 0, 1);
  EXPECT_FALSE(pair.ends[0]->test(sent));
  EXPECT_FALSE(pair.ends[0]->test(later)) << "it overtakes the first";
  pair.stream.let_go();
  std::vector<double> got(10), last(3);
  EXPECT_EQ(comm.receive(place_of(got), 0, any_tag, enough).tag, 0);
  comm.receive(place_of(last), 0, any_tag, enough);
  EXPECT_EQ(got, counted(10, 0));
  EXPECT_EQ(last, pair.one);
  pair.ends[0]->wait(sent, enough);
  pair.ends[0]->wait(later, enough);
}

TEST(StreamOrder, AMessageToItselfThatWaitsIsCancelledAndClosed) {
  Pair pair;
  const CommunicatorCore& comm = pair.sender;
  const TransferPtr sent = comm.start_send(pair.numbers.place(), 0, 7, {}, pair.stream.order());
  const TransferPtr open = comm.start_send(pair.numbers.place(), 0, 8, {}, pair.stream.order());
  EXPECT_TRUE(pair.ends[0]->cancel(sent));
  EXPECT_EQ(code_of([&] { pair.ends[0]->wait(sent, enough); }), Errc::cancelled);
  const std::string said = pair.ends[0]->close({0.01, {}});
  EXPECT_NE(said.find("send to rank 0, tag 8"), std::string::npos) << said;
  EXPECT_EQ(code_of([&] { pair.ends[0]->wait(open, enough); }), Errc::cancelled);
}

// An array's own stream, which the library doesn't make wait for anything.
TEST(StreamOrder, AReceiveOnlyBehindItsStreamEndsOnceItHasArrived) {
  Pair pair;
  EXPECT_EQ(code_of([&] {
              pair.receiver.receive(pair.numbers.place(), 0, 0, {0.02, {}},
                                    pair.stream.order(StreamSide::before));
            }),
            Errc::deadline);
  const TransferPtr arriving = pair.receiver.start_receive(pair.numbers.place(), 0, 0, {},
                                                           pair.stream.order(StreamSide::before));
  std::vector<double> ten = counted(10, 5);
  pair.sender.send(place_of(ten), 1, 0, enough);
  EXPECT_FALSE(pair.ends[1]->test(arriving));
  pair.stream.let_go();
  pair.ends[1]->wait(arriving, enough);
  EXPECT_TRUE(arriving->done) << "its stream was made to wait";
  EXPECT_EQ(pair.numbers.content(), ten);
}

TEST(StreamOrder, APlanStartsBehindTheStreamsOfItsArrays) {
  Pair pair;
  const auto sends = pair.sender.plan({{pair.numbers.place(), 1, 0, pair.stream.number()}}, {});
  std::vector<double> got(10);
  const auto receives = pair.receiver.plan({}, {{place_of(got), 0, 0}});
  receives.start();
  sends.start();
  EXPECT_EQ(code_of([&] { sends.wait({0.02, {}}); }), Errc::deadline);
  EXPECT_FALSE(receives.test());
  pair.stream.let_go();
  while (!receives.test() || !sends.test()) sends.test();
  EXPECT_EQ(got, counted(10, 0));
}

TEST(StreamOrder, ACollectiveWaitsForAStreamNoLongerThanItMay) {
  Pair pair;
  const auto order = pair.stream.order(StreamSide::before);
  std::string said;
  try {
    pair.sender.await_stream(order, CallKind::bcast, {0.02, {}});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::deadline);
    said = error.what();
  }
  EXPECT_NE(said.find("bcast: the stream of its array"), std::string::npos) << said;
  EXPECT_NE(said.find("rank 0: bcast, for the stream of its array"), std::string::npos) << said;
  // The others don't wait for a rank that gave up.
  EXPECT_EQ(code_of([&] { pair.receiver.broadcast(place_of(pair.one), 0, enough); }),
            Errc::cancelled);
}

TEST(StreamOrder, AnInterruptOrTheCollectivesEndEndsTheWaitForAStream) {
  for (const bool interrupts : {true, false}) {
    Pair pair;
    const auto order = pair.stream.order(StreamSide::before);
    Patience patience = enough;
    if (interrupts)
      patience.interrupt = [] { fail(Errc::io, "interrupted"); };
    else
      pair.receiver.give_up("it has enough");
    EXPECT_EQ(code_of([&] { pair.sender.await_stream(order, CallKind::bcast, patience); }),
              interrupts ? Errc::io : Errc::cancelled);
    EXPECT_EQ(code_of([&] { pair.receiver.barrier(enough); }), Errc::cancelled);
    pair.stream.let_go();
    while (!order->is_reached()) std::this_thread::yield();  // else it still waits, and is ended
    pair.sender.await_stream(order, CallKind::bcast, enough);
  }
}

// The receiver has told its caller that the message is on its way, and is stopped.
TEST(StreamOrder, WhoWithdrawsWhatAnotherProcessCopiesLeavesTheLockToOthers) {
  const std::string address = file_address();
  const auto states = as_processes(2, [&](int rank) {
    const auto port = emulated("emulated:2,memory=1MiB,peer=20KB/s");
    const CommunicatorCore comm = joined(address, rank);
    Numbers numbers(port, static_cast<DeviceId>(rank), counted(1000, rank));
    double process = getpid();
    const MessageBuffer its{Layout::contiguous(1, ElementType::float64),
                            reinterpret_cast<std::byte*>(&process)};
    if (rank == 1) {
      const auto order = std::make_shared<StreamOrder>(port, 1, port->streams().open(1));
      comm.receive(numbers.place(), 0, 0, enough, order);
      comm.send(its, 0, 1, enough);
      raise(SIGSTOP);
      comm.receive(its, 0, 2, enough);
      return expect(numbers.content() == counted(1000, 0), "other content");
    }
    const TransferPtr sent = comm.start_send(numbers.place(), 1, 0);
    comm.receive(its, 1, 1, enough);
    auto withdrawn = std::async(std::launch::async, [&] { return comm.endpoint().cancel(sent); });
    // One that waits with the lock ends when the receiver goes on after all.
    std::promise<void> over;
    const auto guard = std::async(std::launch::async, [&, ended = over.get_future()] {
      ended.wait_for(std::chrono::seconds(240));
      kill(static_cast<pid_t>(process), SIGCONT);
    });
    bool has_ended = false;
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      has_ended = has_ended || comm.endpoint().test(sent);
    }
    const bool waits = withdrawn.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
    over.set_value();
    expect(!withdrawn.get(), "what was said to arrive was withdrawn");
    expect(!has_ended, "the message ended while its receiver was stopped");
    expect(waits, "the memory was still read");
    comm.endpoint().wait(sent, enough);
    comm.send(its, 1, 2, enough);
  });
  EXPECT_EQ(states, (std::vector<int>{0, 0}));
}

// Sends 1000 numbers to a process that is stopped while its device still reads them; then `run`s.
void send_to_stopped(const std::function<void(CommunicatorCore& comm, const TransferPtr& sent,
                                              Numbers& numbers)>& run) {
  const std::string address = file_address();
  const auto states = as_processes(2, [&](int rank) {
    const auto port = emulated("emulated:2,memory=1MiB,peer=20KB/s");
    CommunicatorCore comm = joined(address, rank);
    Numbers numbers(port, static_cast<DeviceId>(rank), counted(1000, rank));
    double process = getpid();
    const MessageBuffer its{Layout::contiguous(1, ElementType::float64),
                            reinterpret_cast<std::byte*>(&process)};
    if (rank == 1) {
      const auto order = std::make_shared<StreamOrder>(port, 1, port->streams().open(1));
      comm.send(its, 0, 1, enough);
      comm.receive(numbers.place(), 0, 0, enough, order);
      raise(SIGSTOP);
      return;
    }
    comm.receive(its, 1, 1, enough);
    // Whoever waits for it in vain ends when it goes on after all.
    std::promise<void> over;
    const auto guard = std::async(std::launch::async, [&, ended = over.get_future()] {
      ended.wait_for(std::chrono::seconds(240));
      kill(static_cast<pid_t>(process), SIGCONT);
    });
    run(comm, comm.start_send(numbers.place(), 1, 0, std::make_shared<int>(0)), numbers);
    over.set_value();
  });
  EXPECT_EQ(states, (std::vector<int>{0, 0}));
}

// Until the message is the stopped process's own.
void await_hold(const CommunicatorCore& comm, const TransferPtr& sent) {
  const Patience brief{0.3, {}};
  expect(code_of([&] { comm.endpoint().wait(sent, brief); }) == Errc::deadline, "it was received");
}

TEST(StreamOrder, WhoWithdrawsFromAStoppedProcessWaitsNoLongerThanItMay) {
  send_to_stopped([](const CommunicatorCore& comm, const TransferPtr& sent, Numbers&) {
    static std::string said;
    set_log_sink([](LogLevel, std::string_view message) { said += message; });
    await_hold(comm, sent);
    const auto begin = std::chrono::steady_clock::now();
    expect(!comm.endpoint().cancel(sent), "what is still read was withdrawn");
    expect(!comm.endpoint().withdraw(sent), "what is still read was withdrawn");
    expect(std::chrono::steady_clock::now() - begin < std::chrono::seconds(8), "it took longer");
    expect(!sent->done && sent->keep, "its memory was given back");
    expect(said.find("send to rank 1, tag 0") != std::string::npos, "nothing was said");
  });
}

TEST(StreamOrder, WhatAStoppedProcessReadsOutlivesItsCommunicator) {
  send_to_stopped([](CommunicatorCore& comm, const TransferPtr& sent, Numbers&) {
    set_log_sink([](LogLevel, std::string_view) {});
    await_hold(comm, sent);
    const std::weak_ptr<void> memory = sent->keep;
    const auto begin = std::chrono::steady_clock::now();
    const std::string said = comm.endpoint().close({0, {}});
    expect(std::chrono::steady_clock::now() - begin < std::chrono::seconds(8), "it took longer");
    expect(said.find("send to rank 1, tag 0") != std::string::npos, said.c_str());
    const Patience brief{0.01, {}};
    expect(code_of([&] { comm.endpoint().wait(sent, brief); }) == Errc::deadline, "it has ended");
    const CommunicatorCore last = std::move(comm);  // Ends here.
    expect(!memory.expired(), "its memory was given back");
  });
}

TEST(StreamOrder, WhatAStreamWaitsForHasArrivedOnceItsCommunicatorIsClosed) {
  for (const double patience : {0.0, 30.0}) {
    const std::string address = file_address();
    const auto states = as_processes(2, [&](int rank) {
      static std::string said;
      set_log_sink([](LogLevel, std::string_view message) { said += message; });
      const auto port = emulated("emulated:2,memory=1MiB,peer=80KB/s");
      CommunicatorCore comm = joined(address, rank);
      Numbers numbers(port, static_cast<DeviceId>(rank), counted(1000, rank));
      if (rank == 0) return comm.send(numbers.place(), 1, 0, enough);
      const auto order = std::make_shared<StreamOrder>(port, 1, port->streams().open(1));
      const TransferPtr arriving = comm.start_receive(numbers.place(), 0, 0, {}, order);
      comm.endpoint().wait(arriving, enough);
      expect(!arriving->done, "the stream waited for nothing");
      expect(!comm.endpoint().cancel(arriving), "what was said to arrive was withdrawn");
      comm.endpoint().close({patience, {}});
      comm.endpoint().wait(arriving, enough);
      expect(numbers.content() == counted(1000, 0), "other content");
      expect(said.empty(), said.c_str());
    });
    EXPECT_EQ(states, (std::vector<int>{0, 0})) << patience;
  }
}

}  // namespace
}  // namespace quadriga::message::testing
