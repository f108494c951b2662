// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/message_test.cpp: the public communicator, between threads and processes.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/message.h>
#include <quadriga/message_collectives.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "unit/message/processes.h"
#include "unit/message/public_ranks.h"

namespace quadriga::message::testing {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
  return "";
}

static_assert(element_type<char>() == ElementType::int8);
static_assert(element_type<unsigned short>() == ElementType::uint16);
static_assert(element_type<long>() == ElementType::int64);
static_assert(element_type<bool>() == ElementType::boolean);
static_assert(element_type<std::byte>() == ElementType::bytes);
static_assert(element_type<float>() == ElementType::float32);
static_assert(element_type<std::complex<float>>() == ElementType::complex64);
static_assert(element_type<std::complex<double>>() == ElementType::complex128);
static_assert(!Element<long double> && !Element<std::complex<long double>> && !Element<void*>);
static_assert(std::is_convertible_v<std::vector<int>&, ReceiveBuffer>);
static_assert(std::is_convertible_v<std::span<double>, ReceiveBuffer>);
static_assert(std::is_convertible_v<const std::vector<int>&, SendBuffer>);
static_assert(std::is_convertible_v<std::span<const float, 3>, SendBuffer>);
static_assert(!std::is_convertible_v<const std::vector<int>&, ReceiveBuffer>);
static_assert(!std::is_convertible_v<std::vector<std::string>&, SendBuffer>);
static_assert(!std::is_convertible_v<ReceiveBuffer, SendBuffer>);

TEST(Message, RangesOfAnyElements) {
  as_ranks(2, [](const Communicator& comm) {
    const std::array<std::complex<double>, 2> numbers{{{1, 2}, {3, 4}}};
    const std::vector<std::byte> bytes(30'000, std::byte{7});
    if (comm.rank() == 0) {
      comm.send(numbers, 1, 5);
      comm.send(bytes, 1);
      comm.send(std::span(bytes).first(3), 1);
      comm.barrier();
      return;
    }
    std::array<std::complex<double>, 2> got;
    const Status status = comm.recv(got);
    EXPECT_EQ(got, numbers);
    EXPECT_EQ(status.source, 0);
    EXPECT_EQ(status.tag, 5);
    EXPECT_EQ(status.bytes, 32U);
    std::vector<std::byte> arrived(40'000);
    EXPECT_EQ(comm.recv(arrived, 0, 0).bytes, bytes.size());  // Room for more.
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), arrived.begin()));
    EXPECT_EQ(comm.probe(0).bytes, 3U);
    EXPECT_FALSE(comm.iprobe(0, 77));
    comm.barrier();
    std::vector<double> others(1);
    EXPECT_TRUE(error_of([&] { comm.recv(others); }).starts_with("invalid_argument"));
  });
}

// A column of a matrix of doubles.
Layout column(std::int64_t rows, std::int64_t row_elements) {
  return Layout::vector(rows, 1, row_elements, ElementType::float64);
}

TEST(Message, LayoutsAndRequests) {
  as_ranks(3, [](const Communicator& comm) {
    constexpr int rows = 2000, cols = 3;
    const int right = (comm.rank() + 1) % 3, left = (comm.rank() + 2) % 3;
    std::vector<double> sent(rows * cols), got(rows * cols);
    std::iota(sent.begin(), sent.end(), 1e6 * comm.rank());
    const auto check = [&] {
      for (int i = 0; i < rows; ++i)
        ASSERT_EQ(got[static_cast<std::size_t>(i * cols)], 1e6 * left + i * cols + 2);
    };
    // A column that lies apart into another one.
    comm.sendrecv({&sent[2], column(rows, cols)}, right, {got.data(), column(rows, cols)}, left);
    check();
    std::fill(got.begin(), got.end(), 0);
    const std::array all{comm.irecv({got.data(), column(rows, cols)}, left, 3),
                         comm.isend({&sent[2], column(rows, cols)}, right, 3)};
    const auto statuses = waitall(all);
    check();
    EXPECT_EQ(statuses[0].source, left);
    EXPECT_TRUE(all[0].test());
    EXPECT_FALSE(all[1].cancel());
    const Request waiting = comm.irecv(got, left, 9);
    EXPECT_FALSE(waiting.test());
    EXPECT_EQ(error_of([&] { waiting.wait(0.001); }).substr(0, 20), "deadline: recv from ");
    EXPECT_TRUE(waiting.cancel());
    EXPECT_TRUE(error_of([&] { waiting.wait(); }).starts_with("cancelled"));
    EXPECT_EQ(Request().wait().bytes, 0U);
    // A layout whose elements overlap only travels out.
    const Layout twice = Layout::vector(2, 2, 1, ElementType::float64);
    const std::string why = error_of([&] { comm.irecv({got.data(), twice}); });
    EXPECT_TRUE(why.starts_with("invalid_argument")) << why;
    comm.barrier();
  });
}

// Elements whose sum depends on the order, in arrays that are cut differently.
TEST(Message, ReproducibleSumsDependOnRanksAndRootAlone) {
  as_ranks(4, [](const Communicator& comm) {
    const auto sums_of = [&](std::size_t count, int way) {
      std::vector<double> own(count), sum(count);
      for (std::size_t i = 0; i < count; ++i)
        own[i] = std::ldexp(1.0 / (comm.rank() + 3), static_cast<int>(i % 3) * 17 * comm.rank());
      const ReduceRule by = reproducible(ReduceOperation::sum);
      const std::vector<std::int64_t> counts{static_cast<std::int64_t>(count), 0, 0, 0};
      if (way == 0) comm.reduce(own, sum, by);
      if (way == 1) ireduce(comm, own, sum, by).wait();
      if (way == 2) comm.allreduce(own, sum, by);
      if (way == 3) iallreduce(comm, own, sum, by).wait();
      if (way == 4) {
        std::vector<double> part(comm.rank() == 0 ? count : 0);
        ireduce_scatter(comm, own, part, counts, by).wait();
        if (comm.rank() == 0) sum = part;
      }
      sum.resize(3);
      return sum;
    };
    for (int way = 0; way < 5; ++way) {
      const std::vector<double> few = sums_of(3, way), many = sums_of(60000, way);
      if (comm.rank() == 0) {
        EXPECT_EQ(few, many) << way;
      }
    }
    // All ranks must ask for it: so it is passed on.
    const ReduceRule by = comm.rank() == 0 ? reproducible(ReduceOperation::sum) : ReduceRule();
    const auto differs = [](const std::function<void()>& call) {
      try {
        call();
      } catch (const Error& error) {
        return error.code() == Errc::invalid_argument;
      }
      return false;
    };
    std::vector<double> own(2), sum(2);
    EXPECT_TRUE(differs([&] { comm.reduce(own, sum, by); }));
    EXPECT_TRUE(differs([&] { comm.allreduce(own, sum, by); }));
    EXPECT_TRUE(differs([&] { ireduce(comm, own, sum, by).wait(); }));
    EXPECT_TRUE(differs([&] { iallreduce(comm, own, sum, by).wait(); }));
    const std::vector<std::int64_t> counts{2, 0, 0, 0};
    std::vector<double> part(comm.rank() == 0 ? 2 : 0);
    EXPECT_TRUE(differs([&] { ireduce_scatter(comm, own, part, counts, by).wait(); }));
  });
}

TEST(Message, Collectives) {
  for (const int ranks : {1, 4}) {
    as_ranks(ranks, [ranks](const Communicator& comm) {
      const auto n = static_cast<std::size_t>(ranks);
      std::vector<int> own(5, comm.rank()), all(5 * n), back(5);
      comm.allgather(own, all);
      for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int>(i / 5));
      std::vector<int> gathered(comm.rank() == ranks - 1 ? 5 * n : 0);
      comm.gather(own, gathered, ranks - 1);
      EXPECT_TRUE(gathered.empty() || gathered == all);
      comm.scatter(gathered, back, ranks - 1);
      EXPECT_EQ(back, own);
      EXPECT_EQ(comm.allreduce(comm.rank() + 1), ranks * (ranks + 1) / 2);
      EXPECT_EQ(comm.allreduce(0.5 * comm.rank(), ReduceOperation::max), 0.5 * (ranks - 1));
      std::vector<int> least(comm.rank() == 0 ? 5 : 0);
      comm.reduce(own, least, ReduceOperation::min);
      EXPECT_TRUE(least.empty() || least == std::vector<int>(5, 0));
      comm.bcast(own, ranks - 1);
      EXPECT_EQ(own, std::vector<int>(5, ranks - 1));
      std::vector<long> table(n), turned(n);
      for (std::size_t i = 0; i < n; ++i) table[i] = 10 * comm.rank() + static_cast<long>(i);
      comm.alltoall(table, turned);
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_EQ(turned[i], 10 * static_cast<long>(i) + comm.rank());
      comm.barrier();
      const auto half = comm.Split(comm.rank() % 2, -comm.rank());
      ASSERT_TRUE(half);
      EXPECT_EQ(half->size(), ranks == 1 ? 1 : 2);
      EXPECT_EQ(half->deadline(), 30);
      EXPECT_EQ(half->rank(), ranks == 4 && comm.rank() < 2 ? 1 : 0);
      EXPECT_FALSE(comm.Split(-1));
    });
  }
}

TEST(Message, DeadlinesAndErrors) {
  as_ranks(2, [](const Communicator& comm) {
    std::vector<double> data(3);
    const int other = 1 - comm.rank();
    EXPECT_EQ(comm.deadline(), 30);
    comm.set_deadline(0.01);
    const std::string late = error_of([&] { comm.recv(data, other, 8); });
    EXPECT_TRUE(late.starts_with("deadline: recv from rank")) << late;
    comm.set_deadline({});
    EXPECT_FALSE(comm.deadline());
    EXPECT_TRUE(error_of([&] { comm.recv(data, other, 8, 0.01); }).starts_with("deadline"));
    EXPECT_TRUE(error_of([&] {
                  comm.recv(data, 0, 0, std::nan(""));
                }).starts_with("invalid_argument: deadline isn't a number"));
    EXPECT_TRUE(error_of([&] {
                  comm.send(data, 2);
                }).starts_with("invalid_argument: send: destination is 2; expected 0 to 1"));
    comm.set_deadline(30);
    const std::string differs = error_of([&] { comm.bcast(data, comm.rank()); });
    EXPECT_TRUE(differs.starts_with("invalid_argument")) << differs;
    comm.barrier();
    if (comm.rank() == 1) {
      EXPECT_EQ(comm.close(), "");
      EXPECT_TRUE(error_of([&] { comm.send(data, 0); }).starts_with("unavailable"));
      return;
    }
    try {
      comm.recv(data, 1);
      ADD_FAILURE() << "nobody has sent anything";
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 1);
    }
  });
}

TEST(Message, SurvivorsGoOn) {
  as_ranks(3, [](const Communicator& comm) {
    if (comm.rank() == 1) {
      comm.close();
      return;
    }
    std::vector<int> data(1);
    EXPECT_TRUE(error_of([&] { comm.recv(data, 1); }).starts_with("peer_lost"));
    const Communicator left = comm.shrink();
    EXPECT_EQ(left.size(), 2);
    EXPECT_EQ(left.rank(), comm.rank() / 2);
    EXPECT_EQ(left.deadline(), 30);
    EXPECT_EQ(left.allreduce(comm.rank()), 2);
    left.barrier();
  });
}

TEST(Message, ADeadlineThatHasPassedIsNoWaitWithoutEnd) {
  const Communicator comm = local(1).front();
  std::vector<int> data(1);
  EXPECT_TRUE(error_of([&] { comm.recv(data, 0, 1, -1); }).starts_with("deadline"));
  comm.set_deadline(-5);
  EXPECT_EQ(comm.deadline(), 0);
}

TEST(Message, Processes) {
  const std::string address = new_address(), token = new_token();
  EXPECT_EQ(token.size(), 32U);
  EXPECT_NE(token, new_token());
  const auto states = as_processes(3, [&](int rank) {
    const Communicator comm = join(address, rank, 3, token, {20, 20});
    std::vector<double> large(100'000, rank), got(100'000);
    comm.sendrecv(large, (rank + 1) % 3, got, (rank + 2) % 3);
    expect(got == std::vector<double>(100'000, (rank + 2) % 3), "another content");
    expect(comm.allreduce(rank) == 3, "another sum");
  });
  EXPECT_EQ(states, std::vector<int>(3, 0));
}

TEST(Message, StartsThatAreRefused) {
  EXPECT_TRUE(error_of([] { local(0); }).starts_with("invalid_argument"));
  EXPECT_TRUE(error_of([] { join("file:/tmp/x", 0, 2, "1234"); }).starts_with("invalid_argument"));
  EXPECT_TRUE(
      error_of([] { join("file:/nowhere/x", 2, 2, new_token()); }).starts_with("invalid_argument"));
  EXPECT_EQ(message::world().size(), 1);
}

}  // namespace
}  // namespace quadriga::message::testing
