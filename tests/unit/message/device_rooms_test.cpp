// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/device_rooms_test.cpp: what is kept of the memory that collectives had.
#include "message/device_rooms.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <vector>

#include "base/random.h"
#include "polled_backend.h"
#include "unit/message/device_numbers.h"
#include "unit/message/endpoints.h"

namespace quadriga::message::testing {
namespace {

TEST(DeviceRooms, KeepThoseThatWereGivenLastWithinTheirBound) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    constexpr std::size_t most = 1000;
    DeviceRooms rooms(most);
    std::vector<std::byte> memory(4000);
    std::vector<std::pair<std::byte*, std::size_t>> kept;  // In the order of giving.
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const std::size_t bytes = 100 * (1 + random.below(12));
      const auto same = std::find_if(kept.rbegin(), kept.rend(),
                                     [&](const auto& each) { return each.second == bytes; });
      std::byte* const expected = same == kept.rend() ? nullptr : same->first;
      std::byte* room = rooms.take(bytes);
      ASSERT_EQ(room, expected);
      if (room) std::erase(kept, std::pair(room, bytes));
      if (!room) room = &memory[i];
      std::size_t sum = bytes;
      for (const auto& each : kept) sum += each.second;
      std::vector<std::byte*> gone;
      while (sum > most && !kept.empty()) {
        gone.push_back(kept.front().first);
        sum -= kept.front().second;
        kept.erase(kept.begin());
      }
      kept.emplace_back(room, bytes);
      ASSERT_EQ(rooms.give(room, bytes), gone);
      ASSERT_EQ(rooms.bytes(), sum);
    }
    std::vector<std::byte*> all;
    for (const auto& each : kept) all.push_back(each.first);
    ASSERT_EQ(rooms.clear(), all);
    ASSERT_EQ(rooms.bytes(), 0u);
  }
}

// Each of these sizes had memory of its own for ever.
TEST(DeviceRooms, CollectivesOfManySizesLeaveTheDeviceToOthers) {
  const auto port = emulated("emulated:1,memory=12MiB");
  as_threads(2, [&](const std::shared_ptr<Endpoint>& endpoint) {
    CommunicatorCore comm(endpoint);
    for (std::size_t count = 1000; count <= 150'000; count = count * 3 / 2) {
      Numbers own(port, 0, counted(count, comm.rank())), sum(port, 0, counted(count, 0));
      comm.all_reduce(own.place(), sum.place(), ReduceOperation::sum, enough);
      EXPECT_EQ(sum.content().back(), 2 * static_cast<double>(count) - 1);
    }
    comm.barrier(enough);
  });
  EXPECT_GT(port->memory().room_bytes(0), 0u);
  EXPECT_LE(port->memory().room_bytes(0), std::size_t{3} << 19);
}

// Freeing waits as cudaFree does, for as long as the device has anything to do.
class SlowToFree : public PolledBackend {
 public:
  using PolledBackend::PolledBackend;
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    frees = true;
    const auto limit = std::chrono::seconds(240);  // Who waits for it in vain ends all the same.
    for (const auto begin = std::chrono::steady_clock::now();
         is_busy && std::chrono::steady_clock::now() - begin < limit;)
      std::this_thread::yield();
    PolledBackend::deallocate(device, memory);
  }
  static inline std::atomic<bool> is_busy{true}, frees{false};
};

TEST(DeviceRooms, MessagesMoveOnWhileMemoryIsFreed) {
  const auto port =
      ports::open(Machine::parse("emulated:1,memory=64MiB"),
                  [](const std::unique_ptr<Backend>& backend) -> std::unique_ptr<Backend> {
                    return std::make_unique<SlowToFree>(backend->machine());
                  });
  Numbers own(port, 0, counted(1000, 1));
  std::byte* const memory = port->memory().allocate(0, 1000);
  auto freeing = std::async(std::launch::async, [&] { port->memory().deallocate(0, memory); });
  while (!SlowToFree::frees) std::this_thread::yield();
  EXPECT_EQ(own.content(), counted(1000, 1));
  EXPECT_EQ(freeing.wait_for(std::chrono::seconds(0)), std::future_status::timeout)
      << "reading waited for the end of freeing";
  SlowToFree::is_busy = false;
}

}  // namespace
}  // namespace quadriga::message::testing
