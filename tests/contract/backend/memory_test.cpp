// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/backend/memory_test.cpp: what backends whose devices have memory promise about it
// and about copies.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>

#include "backend_contract.h"

namespace quadriga {
namespace {

class MemoryBackend : public BackendTest {
 protected:
  StreamId in(DeviceId device) { return backend_->create_stream(device, StreamKind::copy_in); }
  StreamId out(DeviceId device) { return backend_->create_stream(device, StreamKind::copy_out); }
};
INSTANTIATE_TEST_SUITE_P(All, MemoryBackend, testing::ValuesIn(memory_backends()), case_name);

class NoMemory : public BackendTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NoMemory);
INSTANTIATE_TEST_SUITE_P(Cpu, NoMemory, testing::ValuesIn([] {
                           std::vector<BackendCase> cases = all_backends();
                           std::erase_if(cases, [](const BackendCase& backend) {
                             return backend.kind != DeviceKind::cpu;
                           });
                           return cases;
                         }()),
                         case_name);

TEST_P(NoMemory, HasNoneToGive) { EXPECT_EQ(backend_->allocate(0, 1), nullptr); }

TEST_P(NoMemory, CopiesNothing) {
  std::byte place{};
  EXPECT_THROW(backend_->copy(compute(0), {0, 1, &place, &place, 1}), Error);
  EXPECT_THROW(backend_->copy(compute(0), {0, 0, &place, &place, 1}), Error);
}

TEST_P(MemoryBackend, FullDeviceGivesNullAndMemoryComesBack) {
  for (int round = 0; round < 3; ++round) {
    std::byte* all = backend_->allocate(0, device_bytes);
    ASSERT_NE(all, nullptr);
    EXPECT_EQ(backend_->allocate(0, 4096), nullptr);
    EXPECT_NE(backend_->allocate(1, 4096), nullptr) << "devices have memory of their own";
    backend_->deallocate(0, all);
    std::vector<std::byte*> parts;
    while (std::byte* part = backend_->allocate(0, device_bytes / 8)) parts.push_back(part);
    EXPECT_EQ(parts.size(), 8u);
    for (const std::size_t i : {3, 0, 7, 1, 6, 2, 5, 4}) backend_->deallocate(0, parts[i]);
  }
  EXPECT_EQ(backend_->allocate(0, device_bytes + 1), nullptr);
  EXPECT_EQ(backend_->allocate(0, SIZE_MAX), nullptr);
}

TEST_P(MemoryBackend, BytesGoInAcrossAndOut) {
  std::vector<std::uint32_t> source(50000);
  std::vector<std::uint32_t> target(50000, 0);
  std::iota(source.begin(), source.end(), 7u);
  const std::size_t bytes = source.size() * sizeof(std::uint32_t);
  std::byte* first = backend_->allocate(0, bytes);
  std::byte* second = backend_->allocate(1, bytes);
  const auto* from = reinterpret_cast<const std::byte*>(source.data());
  auto* to = reinterpret_cast<std::byte*>(target.data());
  const StreamId peer = backend_->create_stream(1, StreamKind::peer_in);
  const StreamId back = out(1);
  backend_->wait(peer, backend_->copy(in(0), {0, 1, from, first, bytes}));
  backend_->wait(back, backend_->copy(peer, {1, 2, first, second, bytes}));
  backend_->copy(back, {2, 0, second, to, bytes});
  for (const Completion& done : collect(3)) EXPECT_FALSE(done.error);
  EXPECT_EQ(source, target);
}

// A rectangle of 5 runs out of a larger matrix, into another pitch, and back to a third.
TEST_P(MemoryBackend, RectanglesKeepTheirShapeAndTouchNothingElse) {
  constexpr std::size_t width = 24;
  constexpr std::size_t height = 5;
  std::vector<std::byte> source(40 * height);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i);
  std::vector<std::byte> target(33 * height, std::byte{0xee});
  std::byte* device = backend_->allocate(0, 4096);
  const StreamId first = in(0);
  const StreamId second = out(0);
  backend_->wait(second,
                 backend_->copy(first, {0, 1, source.data() + 3, device, width, height, 40, 28}));
  backend_->copy(second, {1, 0, device, target.data() + 2, width, height, 28, 33});
  collect(2);
  for (std::size_t run = 0; run < height; ++run) {
    for (std::size_t i = 0; i < 33; ++i) {
      const bool inside = i >= 2 && i < 2 + width;
      const std::byte expected = inside ? source[run * 40 + 3 + i - 2] : std::byte{0xee};
      EXPECT_EQ(target[run * 33 + i], expected) << "run " << run << ", byte " << i;
    }
  }
}

// Three pieces of 5 runs, each with a pitch of its own, and back: on the host they are side by
// side.
TEST_P(MemoryBackend, PiecesLieApartOnTheDeviceOnly) {
  constexpr std::size_t widths[] = {8, 3, 13};
  constexpr std::size_t height = 5;
  std::vector<std::byte> source(40 * height);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i);
  std::vector<std::byte> target(33 * height, std::byte{0xee});
  auto pieces = std::make_shared<std::vector<Piece>>();
  std::vector<std::byte*> blocks;
  for (const std::size_t width : widths) {
    blocks.push_back(backend_->allocate(0, 4096));
    pieces->push_back({blocks.back() + width, width, width + 5});
  }
  Copy load{.to = 1, .source = source.data() + 2, .width_bytes = 24, .height = height};
  load.source_pitch = 40;
  load.pieces = pieces;
  Copy store{.from = 1, .target = target.data() + 1, .width_bytes = 24, .height = height};
  store.target_pitch = 33;
  store.pieces = pieces;
  // The middle piece alone, to see that it lies where it should.
  std::vector<std::byte> middle(3 * height);
  const StreamId first = in(0);
  const StreamId second = out(0);
  backend_->wait(second, backend_->copy(first, load));
  backend_->copy(second, store);
  backend_->copy(second, {1, 0, blocks[1] + 3, middle.data(), 3, height, 8, 3});
  for (const Completion& done : collect(3)) EXPECT_FALSE(done.error);
  for (std::size_t run = 0; run < height; ++run) {
    for (std::size_t i = 0; i < 33; ++i) {
      const bool inside = i >= 1 && i < 25;
      const std::byte expected = inside ? source[run * 40 + 2 + i - 1] : std::byte{0xee};
      EXPECT_EQ(target[run * 33 + i], expected) << "run " << run << ", byte " << i;
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(middle[run * 3 + i], source[run * 40 + 10 + i]);
  }
}

TEST_P(MemoryBackend, PiecesThatAreNotTheRunsAreRefused) {
  std::byte* device = backend_->allocate(0, 4096);
  std::byte host[64];
  Copy copy{.to = 1, .source = host, .width_bytes = 8, .height = 2, .source_pitch = 16};
  copy.pieces = std::make_shared<std::vector<Piece>>(1, Piece{device, 7, 8});
  const StreamId stream = in(0);
  EXPECT_THROW(backend_->copy(stream, copy), Error) << "too narrow";
  copy.pieces = std::make_shared<std::vector<Piece>>(1, Piece{nullptr, 8, 8});
  EXPECT_THROW(backend_->copy(stream, copy), Error) << "nowhere";
  copy.from = 2;
  copy.pieces = std::make_shared<std::vector<Piece>>(1, Piece{device, 8, 8});
  EXPECT_THROW(backend_->copy(stream, copy), Error) << "not from the host";
}

TEST_P(MemoryBackend, EmptyCopiesEnd) {
  std::byte* device = backend_->allocate(0, 4096);
  std::byte host{};
  const StreamId stream = in(0);
  backend_->copy(stream, {0, 1, &host, device, 0});
  backend_->copy(stream, {0, 1, &host, device, 1, 0});
  EXPECT_EQ(collect(2).size(), 2u);
}

TEST_P(MemoryBackend, CopiesThatNoRouteJoinsAreRefused) {
  std::byte* first = backend_->allocate(0, 4096);
  std::byte* second = backend_->allocate(1, 4096);
  std::byte host[2];
  const StreamId stream = in(0);
  EXPECT_THROW(backend_->copy(stream, {2, 1, second, first, 8}), Error);
  EXPECT_THROW(backend_->copy(stream, {0, 7, host, first, 1}), Error);
  EXPECT_THROW(backend_->copy(stream, {0, 0, host, host + 1, 1}), Error);
  EXPECT_THROW(backend_->copy(stream, {0, 1, nullptr, first, 1}), Error);
  EXPECT_THROW(backend_->copy(stream, {0, 1, host, first, 2, 2, 1, 2}), Error);
  backend_->wake();
  Completion none;
  EXPECT_EQ(backend_->next_completion({&none, 1}, never), 0u) << "nothing was queued";
}

TEST_P(MemoryBackend, KernelsWorkOnDeviceMemoryBetweenCopies) {
  std::vector<double> host(16, 1.5);
  std::byte* device = backend_->allocate(0, 16 * sizeof(double));
  auto* bytes = reinterpret_cast<std::byte*>(host.data());
  const StreamId first = in(0);
  const StreamId kernel = compute(0);
  const StreamId last = out(0);
  const View view{device, 16, 1, 16, DType::float64};
  const auto twice = [](const Arguments& call) {
    for (int i = 0; i < 16; ++i) call.operands[0].as<double>()[i] *= 2;
  };
  backend_->wait(kernel, backend_->copy(first, {0, 1, bytes, device, 16 * sizeof(double)}));
  launch(kernel, twice, 1, {&view, 1});
  backend_->wait(last, launch(kernel, twice, 1, {&view, 1}));
  backend_->copy(last, {1, 0, device, bytes, 16 * sizeof(double)});
  for (const Completion& done : collect(4)) EXPECT_FALSE(done.error);
  EXPECT_EQ(host, std::vector<double>(16, 6.0));
}

TEST_P(MemoryBackend, CopiesInCopiesOutAndKernelsOverlap) {
  if (!GetParam().emulates) GTEST_SKIP() << "this machine's links are as fast as they are";
  // Copies of 300 ms, the time that the thread of the second has to begin.
  constexpr std::size_t bytes = 300000;
  start(contract_machine(GetParam().kind, 1e6));
  std::vector<std::byte> host(2 * bytes);
  std::byte* first = backend_->allocate(0, bytes);
  std::byte* second = backend_->allocate(0, bytes);
  std::atomic<bool> began{backend_->is_virtual()}, copied{false};
  launch_until(compute(0), 300, [&] { return began = true, copied.load(); });
  while (!began) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  backend_->copy(in(0), {0, 1, host.data(), first, bytes});
  backend_->copy(out(0), {1, 0, second, host.data() + bytes, bytes});
  Nanoseconds last_begin = 0;
  Nanoseconds first_end = never;
  for (int ended = 0; ended < 3; ++ended) {
    const Completion done = collect(1)[0];
    last_begin = std::max(last_begin, done.begin);
    first_end = std::min(first_end, done.end);
    copied = ended >= 1;
  }
  EXPECT_LT(last_begin, first_end) << "there was no moment at which all three ran";
}

TEST_P(MemoryBackend, CopiesAreNoFasterThanTheirLinks) {
  if (!GetParam().emulates) GTEST_SKIP() << "this machine's links are as fast as they are";
  start(contract_machine(GetParam().kind, 20e6));
  std::vector<std::byte> host(400000);
  std::byte* first = backend_->allocate(0, 400000);
  std::byte* second = backend_->allocate(0, 400000);
  const StreamId one = in(0);
  const StreamId two = in(0);
  backend_->copy(one, {0, 1, host.data(), first, 400000});
  backend_->copy(two, {0, 1, host.data(), second, 400000});
  Nanoseconds begin = never;
  Nanoseconds end = 0;
  for (const Completion& done : collect(2)) {
    // 20 ms alone; up to a tenth less by the noise of the virtual clock.
    EXPECT_GE(done.end - done.begin, 18'000'000);
    begin = std::min(begin, done.begin);
    end = std::max(end, done.end);
  }
  EXPECT_GE(end - begin, 36'000'000) << "they share the link";
}

TEST_P(MemoryBackend, CopiesByShortRunsAreSlowAndHoldUpNoOthers) {
  if (!GetParam().emulates) GTEST_SKIP() << "this machine's links are as fast as they are";
  bool is_held_up = true;
  // Ten times as slow if others keep the machine busy, so that the second comes late.
  for (double rate = 20e6; is_held_up && rate > 1e4; rate /= 10) {
    Machine machine = contract_machine(GetParam().kind, rate);
    machine.links[0].runs = {{1000, 0.05}, {2000, 1}};
    start(std::move(machine));
    std::vector<std::byte> host(400000, std::byte{7});
    std::byte* first = backend_->allocate(0, 200000);
    std::byte* second = backend_->allocate(0, 200000);
    const StreamId slow = in(0);
    backend_->copy(slow, {0, 1, host.data(), first, 1000, 200, 2000, 1000});
    backend_->copy(in(0), {0, 1, host.data(), second, 200000});
    const std::vector<Completion> done = collect(2);
    is_held_up = done[0].event.stream == slow;  // the other takes 11 ms
    if (is_held_up) continue;
    EXPECT_GE(static_cast<double>(done[1].end - done[1].begin), 0.18e9 * 20e6 / rate)
        << "200 ms but for the noise";
  }
  EXPECT_FALSE(is_held_up);
}

TEST_P(MemoryBackend, DestroyedWithCopiesRunningItDoesNotHang) {
  start(contract_machine(GetParam().kind, 10));
  std::vector<std::byte> host(4096);
  std::byte* device = backend_->allocate(0, 4096);
  backend_->copy(in(0), {0, 1, host.data(), device, 4096});  // 400 s
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto begin = std::chrono::steady_clock::now();
  backend_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(100));
}

}  // namespace
}  // namespace quadriga
