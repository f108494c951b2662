// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/path_prediction_test.cpp: predicted seconds of each path, and the one that is
// chosen, which is the one that messages take.
#include "message/path_prediction.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/message.h>

#include <algorithm>

#include "message/schedules/step_cache.h"
#include "unit/message/device_numbers.h"
#include "unit/message/endpoints.h"

namespace quadriga::message::testing {
namespace {

PathQuestion question_of(const MessageBuffer& from, const MessageBuffer& into) {
  PathQuestion question{from, into};
  question.can_read = true;
  question.slot_bytes = 8192;
  question.piece_bytes = 32768;
  question.rates = {10e9, 1e-6};
  return question;
}

std::string chosen(const std::vector<PredictedPath>& paths) {
  EXPECT_EQ(std::ranges::count(paths, true, &PredictedPath::is_chosen), 1);
  return std::ranges::find(paths, true, &PredictedPath::is_chosen)->name;
}

Seconds seconds_of(const std::vector<PredictedPath>& paths, const std::string& name) {
  const auto found = std::ranges::find(paths, name, &PredictedPath::name);
  return found == paths.end() ? Seconds() : found->seconds;
}

TEST(Prediction, OfTheHostFollowsSizeLayoutAndWhatTheSystemPermits) {
  std::vector<double> data(2'000'000);
  MessageBuffer place{Layout::contiguous(1024, ElementType::float64),
                      reinterpret_cast<std::byte*>(data.data())};
  PathQuestion question = question_of(place, place);
  auto paths = predicted_paths(question);
  EXPECT_EQ(chosen(paths), "slot");
  EXPECT_DOUBLE_EQ(seconds_of(paths, "slot").value_or(0), 1e-6 + 2 * 8192 / 10e9);
  question.from.layout = Layout::contiguous(1'000'000, ElementType::float64);
  paths = predicted_paths(question);
  EXPECT_EQ(chosen(paths), "read");
  EXPECT_DOUBLE_EQ(seconds_of(paths, "read").value_or(0), 2e-6 + 8e6 / 10e9);
  EXPECT_GT(seconds_of(paths, "pieces").value_or(0), seconds_of(paths, "read").value_or(0));
  question.can_read = false;
  EXPECT_EQ(chosen(predicted_paths(question)), "pieces");
  question.can_read = true;
  question.from.layout = Layout::vector(1'000'000, 1, 2, ElementType::float64);
  EXPECT_EQ(chosen(predicted_paths(question)), "pieces");
  question.is_own = true;
  EXPECT_EQ(chosen(predicted_paths(question)), "copy");
}

// Not what a model of collectives supposes.
TEST(Prediction, LatenciesAreMeasured) {
  const HostRates& rates = host_rates();
  EXPECT_NE(rates.latency_seconds, StepCache::latency_seconds);
  EXPECT_GT(rates.latency_seconds, 1e-9);
  EXPECT_LT(rates.latency_seconds, 1);
  EXPECT_EQ(&rates, &host_rates()) << "measured twice";
}

TEST(Prediction, OfDevicesFollowsTheLinksAndWhatThePairFoundOut) {
  const auto port = emulated("emulated:2,memory=64MiB,h2d=1GB/s,d2h=1GB/s,peer=2GB/s,latency=0us");
  Numbers one(port, 0, counted(1'000'000, 0)), other(port, 1, counted(1'000'000, 0));
  PathQuestion question = question_of(one.place(), other.place());
  auto paths = predicted_paths(question);
  EXPECT_EQ(chosen(paths), "mapped");
  EXPECT_DOUBLE_EQ(seconds_of(paths, "mapped").value_or(0), 2e-6 + 8e6 / 2e9);
  EXPECT_DOUBLE_EQ(seconds_of(paths, "staged").value_or(0),
                   2e-6 + 8e6 / 1e9 + PortBlocks::block_bytes / 1e9);
  question.known = PairPath::not_opened;
  EXPECT_EQ(chosen(predicted_paths(question)), "staged");
  std::vector<double> host(1'000'000);
  question.into = place_of(host);
  EXPECT_DOUBLE_EQ(seconds_of(predicted_paths(question), "mapped").value_or(0), 2e-6 + 8e6 / 1e9);
  question.into = one.place();  // Within a device, whose memory's rate isn't stated.
  EXPECT_FALSE(seconds_of(predicted_paths(question), "mapped"));
}

// What messages then do is seen by what was opened.
TEST(Prediction, APairsPathIsTheOneThatItsMessagesTake) {
  for (const bool maps : {true, false}) {
    const std::string address = file_address();
    const auto states = as_processes(2, [&](int rank) {
      const auto port = emulated();
      CommunicatorCore comm = joined(address, rank);
      Numbers numbers(port, static_cast<DeviceId>(rank), counted(100'000, rank));
      if (rank == 1 && !maps) comm.endpoint().force_path(0, PairPath::no_files);
      comm.barrier(enough);
      if (rank == 0) {
        comm.send(numbers.place(), 1, 0, enough);
        const auto paths = comm.predict(numbers.place(), 1, numbers.place());
        expect(chosen(paths) == (maps ? "mapped" : "staged"), "another path was predicted");
      } else {
        comm.receive(numbers.place(), 0, 0, enough);
        expect(comm.endpoint().pair(0).opened == (maps ? 1 : 0), "another path was taken");
      }
      comm.barrier(enough);
    });
    EXPECT_EQ(states, (std::vector<int>{0, 0}));
  }
}

TEST(Prediction, IsAskedOfACommunicator) {
  const std::vector<Communicator> ranks = local(2);
  const std::vector<double> large(100'000);
  const auto paths = ranks[0].predict(large, 1);
  EXPECT_EQ(chosen(paths), "pieces") << "threads of one process have no process to read from";
  EXPECT_GT(seconds_of(paths, "pieces").value_or(0), 0);
  EXPECT_EQ(chosen(ranks[0].predict(large, 0)), "copy");
  EXPECT_EQ(code_of([&] { static_cast<void>(ranks[0].predict(large, 2)); }),
            Errc::invalid_argument);
}

}  // namespace
}  // namespace quadriga::message::testing
