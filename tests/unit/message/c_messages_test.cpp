// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/c_messages_test.cpp: the interface for C: results, numbers of errors, words.
#include <gtest/gtest.h>
#include <quadriga/message.h>
#include <quadriga/message_c.h>
#include <quadriga/message_parts_c.h>

#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "unit/message/processes.h"

namespace quadriga::message::testing {
namespace {

const quadriga_layout* const real = quadriga_element(QUADRIGA_FLOAT64);

TEST(CMessages, BetweenProcesses) {
  const std::string address = new_address(), token = new_token();
  const auto states = as_processes(3, [&](int rank) {
    quadriga_communicator* comm = nullptr;
    expect(quadriga_join(address.c_str(), rank, 3, token.c_str(), 20, &comm) == 0, "join");
    expect(quadriga_rank(comm) == rank && quadriga_size(comm) == 3, "rank and size");
    const int right = (rank + 1) % 3, left = (rank + 2) % 3;
    std::vector<double> out(100'000, rank), in(100'000);
    quadriga_status status{};
    expect(quadriga_sendrecv(comm, out.data(), 100'000, real, right, 4, in.data(), 100'000, real,
                             left, QUADRIGA_ANY_TAG, &status) == 0,
           "sendrecv");
    expect(in == std::vector<double>(100'000, left) && status.source == left && status.tag == 4 &&
               status.bytes == 800'000,
           "what was received");
    // Every third element becomes a block of two in every four.
    quadriga_layout *third = nullptr, *pairs = nullptr;
    const std::array<std::int64_t, 2> lengths{2, 2}, places{0, 4};
    expect(quadriga_layout_vector(4, 1, 3, real, &third) == 0, "vector");
    expect(quadriga_layout_indexed(2, lengths.data(), places.data(), real, &pairs) == 0, "indexed");
    std::iota(out.begin(), out.end(), 0);
    quadriga_request *sending = nullptr, *arriving = nullptr;
    expect(quadriga_irecv(comm, in.data(), 1, pairs, left, 5, &arriving) == 0, "irecv");
    expect(quadriga_isend(comm, out.data(), 1, third, right, 5, &sending) == 0, "isend");
    quadriga_layout_free(third);
    quadriga_layout_free(pairs);
    expect(quadriga_wait(&arriving, nullptr) == 0 && arriving == nullptr, "wait");
    expect(quadriga_wait(&sending, nullptr) == 0 && quadriga_wait(&sending, nullptr) == 0, "ended");
    expect(in[0] == 0 && in[1] == 3 && in[4] == 6 && in[5] == 9 && in[2] == left, "layouts");
    std::array<int, 2> most{rank, -rank};
    expect(quadriga_allreduce(comm, most.data(), most.data(), 2, quadriga_element(QUADRIGA_INT32),
                              QUADRIGA_MAX) == 0,
           "allreduce");
    expect(most[0] == 2 && most[1] == 0, "greatest");
    expect(quadriga_bcast(comm, most.data(), 2, quadriga_element(QUADRIGA_INT32), 1) == 0, "bcast");
    expect(quadriga_barrier(comm) == 0, "barrier");
    // A root that differs is an error on all ranks.
    expect(quadriga_bcast(comm, in.data(), 1, real, rank) == QUADRIGA_INVALID, "roots differ");
    expect(quadriga_barrier(comm) == 0, "barrier");
    // So are arguments that are wrong on one alone.
    const std::int64_t count = rank == 1 ? -1 : 2;
    const auto* const type = quadriga_element(QUADRIGA_INT32);
    void* const place = most.data();
    expect(quadriga_allreduce(comm, place, place, count, type, QUADRIGA_MAX) == QUADRIGA_INVALID,
           "a wrong count of one rank");
    expect(
        std::string_view(quadriga_message()).find("expected 0 or more") != std::string_view::npos,
        "what was wrong there");
    expect(quadriga_bcast(comm, rank == 2 ? nullptr : place, 2, type, 0) == QUADRIGA_INVALID,
           "no address on one rank");
    expect(quadriga_barrier(comm) == 0, "barrier");
    if (rank == 1) return quadriga_leave(comm);
    if (rank == 0)
      expect(quadriga_recv(comm, in.data(), 1, real, 1, 9, nullptr) == QUADRIGA_PEER_LOST, "lost");
    quadriga_leave(comm);
  });
  EXPECT_EQ(states, std::vector<int>(3, 0));
}

TEST(CMessages, CollectivesThatAreStarted) {
  const std::string address = new_address(), token = new_token();
  const auto states = as_processes(2, [&](int rank) {
    quadriga_communicator* comm = nullptr;
    expect(quadriga_join(address.c_str(), rank, 2, token.c_str(), 20, &comm) == 0, "join");
    std::array<double, 2> own{1.0 + rank, 5}, told = own, sum{}, most{}, back{};
    std::array<double, 4> all{}, whole{}, turned{}, given{1, 2, 3, 4};
    std::array<quadriga_request*, 8> requests{};
    auto* at = requests.data();
    expect(quadriga_ibarrier(comm, at++) == 0, "ibarrier");
    expect(quadriga_ibcast(comm, told.data(), 2, real, 1, at++) == 0, "ibcast");
    expect(quadriga_iallreduce(comm, own.data(), sum.data(), 2, real, QUADRIGA_SUM, at++) == 0,
           "iallreduce");
    expect(quadriga_ireduce(comm, own.data(), most.data(), 2, real, QUADRIGA_MAX, 1, at++) == 0,
           "ireduce");
    expect(quadriga_iallgather(comm, own.data(), all.data(), 2, real, at++) == 0, "iallgather");
    expect(quadriga_igather(comm, own.data(), whole.data(), 2, real, 0, at++) == 0, "igather");
    expect(quadriga_iscatter(comm, given.data(), back.data(), 2, real, 0, at++) == 0, "iscatter");
    expect(quadriga_ialltoall(comm, given.data(), turned.data(), 2, real, at++) == 0, "ialltoall");
    for (quadriga_request*& each : requests)
      expect(quadriga_wait(&each, nullptr) == 0 && each == nullptr, "wait");
    expect(told[0] == 2 && sum[0] == 3 && sum[1] == 10, "bcast, allreduce");
    expect(rank == 0 || most[0] == 2, "reduce");
    expect(all[0] == 1 && all[2] == 2 && (rank == 1 || whole == all), "gathered");
    expect(back[1] == 2 + 2 * rank && turned[3] == 2 + 2 * rank, "scatter, alltoall");
    // What is wrong on one rank alone raises on both.
    quadriga_request* wrong = nullptr;
    const std::int64_t count = rank == 0 ? -1 : 2;
    const std::int64_t result = quadriga_ibcast(comm, told.data(), count, real, 0, &wrong);
    expect(result == (rank == 0 ? QUADRIGA_INVALID : 0), "a wrong count");
    expect(rank == 0 || quadriga_wait(&wrong, nullptr) == QUADRIGA_INVALID, "of the other one");
    expect(quadriga_ibarrier(comm, nullptr) == QUADRIGA_INVALID, "nowhere for the request");
    expect(quadriga_barrier(comm) == 0, "barrier");
    quadriga_leave(comm);
  });
  EXPECT_EQ(states, std::vector<int>(2, 0));
}

TEST(CMessages, PartsOfAnySizesThatAreStarted) {
  const std::string address = new_address(), token = new_token();
  const auto states = as_processes(2, [&](int rank) {
    quadriga_communicator* comm = nullptr;
    expect(quadriga_join(address.c_str(), rank, 2, token.c_str(), 20, &comm) == 0, "join");
    // Rank 0 has one number, rank 1 two.
    const std::array<std::int64_t, 2> counts{1, 2}, turned{2, 0}, same{1 + rank, 1 + rank};
    const auto own = static_cast<std::int64_t>(rank + 1);
    const std::array<double, 2> mine{10. + rank, 20. + rank};
    std::array<double, 3> all{}, some{}, root_has{1, 2, 3};
    std::array<double, 2> part{}, sums{};
    const std::array<double, 4> out{0, 1, 2, 3};
    std::array<double, 4> in{}, columns{};
    std::array<quadriga_request*, 7> requests{};
    auto* at = requests.data();
    const bool first = rank == 0;
    const std::int64_t* const none = nullptr;
    expect(quadriga_iallgatherv(comm, mine.data(), own, all.data(), counts.data(), turned.data(),
                                real, at++) == 0,
           "iallgatherv");
    expect(quadriga_igatherv(comm, mine.data(), own, first ? some.data() : nullptr,
                             first ? counts.data() : none, none, real, 0, at++) == 0,
           "igatherv");
    expect(quadriga_iscatterv(comm, first ? nullptr : root_has.data(), first ? none : counts.data(),
                              none, part.data(), own, real, 1, at++) == 0,
           "iscatterv");
    // From each to each as many as the receiver's rank, plus one.
    expect(quadriga_ialltoallv(comm, out.data(), counts.data(), none, in.data(), same.data(), none,
                               real, at++) == 0,
           "ialltoallv");
    expect(quadriga_ireduce_scatter(comm, root_has.data(), sums.data(), counts.data(), real,
                                    QUADRIGA_SUM, at++) == 0,
           "ireduce_scatter");
    quadriga_layout* column = nullptr;
    expect(quadriga_layout_vector(2, 1, 2, real, &column) == 0, "a column");
    std::array<double, 2> pair = mine;
    const quadriga_part row{pair.data(), 2, real, 1 - rank},
        into{columns.data(), 1, column, 1 - rank};
    expect(quadriga_ialltoallw(comm, 1, &row, 1, &into, at++) == 0, "ialltoallw");
    double left = 0, right = 1. + rank;
    const quadriga_part given{&right, 1, real, 1 - rank}, taken{&left, 1, real, 1 - rank};
    expect(quadriga_ineighbor_alltoall(comm, 1, &given, 1, &taken, at++) == 0, "neighbours");
    for (quadriga_request*& each : requests) expect(quadriga_wait(&each, nullptr) == 0, "wait");
    quadriga_layout_free(column);
    expect(all == std::array<double, 3>{11, 21, 10}, "allgatherv");
    expect(!first || some == std::array<double, 3>{10, 11, 21}, "gatherv");
    expect(part == (first ? std::array<double, 2>{1, 0} : std::array<double, 2>{2, 3}), "scatterv");
    expect(in == (first ? std::array<double, 4>{0, 0, 0, 0} : std::array<double, 4>{1, 2, 1, 2}),
           "alltoallv");
    expect(sums == (first ? std::array<double, 2>{2, 0} : std::array<double, 2>{4, 6}), "sums");
    expect(columns == std::array<double, 4>{11. - rank, 0, 21. - rank, 0}, "alltoallw");
    expect(left == 2 - rank, "neighbour");
    // What is wrong on one rank alone raises on both.
    quadriga_request* wrong = nullptr;
    const std::array<std::int64_t, 2> huge{INT64_MAX, INT64_MAX};
    const std::int64_t result =
        quadriga_iallgatherv(comm, mine.data(), own, all.data(),
                             first ? huge.data() : counts.data(), none, real, &wrong);
    expect(result == (first ? QUADRIGA_INVALID : 0), "counts that have no sum");
    expect(first || quadriga_wait(&wrong, nullptr) == QUADRIGA_INVALID, "of the other one");
    expect(quadriga_barrier(comm) == 0, "barrier");
    quadriga_leave(comm);
  });
  EXPECT_EQ(states, std::vector<int>(2, 0));
}

TEST(CMessages, CollectivesAndPlans) {
  const std::string address = new_address(), token = new_token();
  const auto states = as_processes(3, [&](int rank) {
    quadriga_communicator *comm = nullptr, *part = nullptr;
    expect(quadriga_join(address.c_str(), rank, 3, token.c_str(), 20, &comm) == 0, "join");
    const std::array<double, 2> own{1.0 + rank, 10.0 * rank};
    std::array<double, 6> all{}, turned{};
    expect(quadriga_reduce(comm, own.data(), all.data(), 2, real, QUADRIGA_SUM, 1) == 0, "reduce");
    // All ranks must ask for it: so it is passed on.
    std::array<double, 2> other{};
    const auto same_bits = static_cast<quadriga_operation>(QUADRIGA_SUM | QUADRIGA_REPRODUCIBLE);
    const auto asked = quadriga_rank(comm) == 0 ? same_bits : QUADRIGA_SUM;
    expect(quadriga_allreduce(comm, own.data(), other.data(), 2, real, same_bits) == 0,
           "same bits");
    expect(quadriga_allreduce(comm, own.data(), other.data(), 2, real, asked) == QUADRIGA_INVALID &&
               std::string_view(quadriga_message()).find("reproducible") != std::string_view::npos,
           "one alone");
    expect(rank == 1 ? all[0] == 6 && all[1] == 30 : all[0] == 0, "sums");
    expect(quadriga_gather(comm, own.data(), rank == 2 ? all.data() : nullptr, 2, real, 2) == 0,
           "gather");
    expect(rank != 2 || (all[2] == 2 && all[5] == 20), "gathered");
    expect(quadriga_allgather(comm, own.data(), all.data(), 2, real) == 0, "allgather");
    expect(all[0] == 1 && all[4] == 3 && all[3] == 10, "all of them");
    std::array<double, 2> back{};
    expect(quadriga_scatter(comm, rank == 0 ? all.data() : nullptr, back.data(), 2, real, 0) == 0,
           "scatter");
    expect(back == own, "scattered");
    all[2] += rank;
    expect(quadriga_alltoall(comm, all.data(), turned.data(), 2, real) == 0, "alltoall");
    expect(rank != 1 || (turned[0] == 2 && turned[4] == 4), "turned");
    expect(quadriga_split(comm, rank == 0 ? -1 : 5, -rank, &part) == 0, "split");
    expect((part == nullptr) == (rank == 0), "a part");
    expect(rank == 0 || quadriga_rank(part) == 2 - rank, "by key");
    if (part != nullptr) expect(quadriga_barrier(part) == 0, "barrier of a part");
    quadriga_leave(part);  // The world stays.
    // A ring, three times.
    double sent = 0, received = -1;
    const quadriga_planned out{&sent, 1, real, (rank + 1) % 3, 7};
    const quadriga_planned in{&received, 1, real, (rank + 2) % 3, 7};
    quadriga_plan* plan = nullptr;
    expect(quadriga_plan_make(comm, 1, &out, 1, &in, &plan) == 0, "plan");
    for (int round = 0; round < 3; ++round) {
      sent = 100 * round + rank;
      expect(quadriga_plan_start(plan) == 0 && quadriga_plan_wait(plan) == 0, "a round");
      expect(received == 100 * round + (rank + 2) % 3, "of the round");
    }
    quadriga_plan_free(plan);
    expect(quadriga_plan_make(comm, 1, nullptr, 0, nullptr, &plan) == QUADRIGA_INVALID &&
               plan == nullptr,
           "no list");
    expect(quadriga_plan_start(nullptr) == QUADRIGA_INVALID, "no plan");
    expect(quadriga_scatter(comm, own.data(), back.data(), -1, real, 0) == QUADRIGA_INVALID,
           "a negative count");
    quadriga_leave(comm);
  });
  EXPECT_EQ(states, std::vector<int>(3, 0));
}

TEST(CMessages, NumbersAndWordsOfErrors) {
  quadriga_communicator* comm = nullptr;
  ASSERT_EQ(quadriga_world(0.01, &comm), 0);
  EXPECT_EQ(quadriga_size(comm), 1);
  double x = 1;
  EXPECT_EQ(quadriga_recv(comm, &x, 1, real, 0, 3, nullptr), QUADRIGA_DEADLINE);
  EXPECT_TRUE(std::string_view(quadriga_message()).starts_with("recv from rank 0, tag 3"))
      << quadriga_message();
  EXPECT_EQ(quadriga_send(comm, &x, 1, real, 1, 3), QUADRIGA_INVALID);
  EXPECT_EQ(quadriga_send(comm, &x, -1, real, 0, 3), QUADRIGA_INVALID);
  EXPECT_EQ(quadriga_send(comm, nullptr, 1, real, 0, 3), QUADRIGA_INVALID);
  EXPECT_EQ(quadriga_send(comm, &x, 1, nullptr, 0, 3), QUADRIGA_INVALID);
  EXPECT_EQ(quadriga_send(nullptr, &x, 1, real, 0, 3), QUADRIGA_INVALID);
  EXPECT_EQ(std::string_view(quadriga_message()), "the communicator is NULL");
  EXPECT_EQ(quadriga_isend(comm, &x, 1, real, 0, 3, nullptr), QUADRIGA_INVALID);
  EXPECT_EQ(quadriga_allreduce(comm, &x, &x, 1, real, static_cast<quadriga_operation>(10)),
            QUADRIGA_INVALID);
  EXPECT_EQ(quadriga_allreduce(comm, &x, &x, 1, real, static_cast<quadriga_operation>(266)),
            QUADRIGA_INVALID);
  EXPECT_TRUE(std::string_view(quadriga_message())
                  .ends_with("operation 10; expected 0 to 9, and QUADRIGA_REPRODUCIBLE or not"))
      << quadriga_message();
  quadriga_request* request = nullptr;
  ASSERT_EQ(quadriga_irecv(comm, &x, 1, real, 0, 8, &request), 0);
  EXPECT_EQ(quadriga_wait(&request, nullptr), QUADRIGA_DEADLINE);
  ASSERT_NE(request, nullptr) << "it goes on";
  const double sent = 5;
  EXPECT_EQ(quadriga_send(comm, &sent, 1, real, 0, 8), 0);
  EXPECT_EQ(quadriga_wait(&request, nullptr), 0);
  EXPECT_EQ(x, 5);
  quadriga_layout* made = nullptr;
  EXPECT_EQ(quadriga_layout_vector(-1, 1, 1, real, &made), QUADRIGA_INVALID);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(quadriga_layout_subarray(2, nullptr, nullptr, nullptr, real, &made), QUADRIGA_INVALID);
  const std::array<std::int64_t, 2> shape{4, 5}, part{2, 2}, start{1, 1};
  EXPECT_EQ(quadriga_layout_subarray(2, shape.data(), part.data(), start.data(), real, &made), 0);
  quadriga_layout_free(made);
  EXPECT_EQ(quadriga_layout_resized(real, 0, 16, &made), 0);
  std::array<double, 4> spread{1, 2, 3, 4}, got{};
  EXPECT_EQ(quadriga_send(comm, spread.data(), 2, made, 0, 1), 0);  // Every second one.
  EXPECT_EQ(quadriga_recv(comm, got.data(), 4, real, 0, 1, nullptr), 0);
  EXPECT_EQ(got[1], 3);
  quadriga_layout_free(made);
  quadriga_leave(comm);
  EXPECT_EQ(quadriga_join("file:/nowhere/x", 0, 2, "short", 1, &comm), QUADRIGA_INVALID);
  EXPECT_EQ(comm, nullptr);
  quadriga_leave(nullptr);
  quadriga_layout_free(nullptr);
}

}  // namespace
}  // namespace quadriga::message::testing
