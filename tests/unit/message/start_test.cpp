// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/start_test.cpp: worlds by launchers' variables, whole and half-set.
#include "message/start.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/message.h>

#include <filesystem>
#include <fstream>

#include "unit/message/endpoints.h"
#include "unit/message/processes.h"

namespace quadriga::message::testing {
namespace {

using Variables = std::map<std::string, std::string>;

const std::string own = std::to_string(getpid());

// Joins three processes by what `make` says of each, and sends around.
void check_world(const std::function<Variables(int rank)>& make) {
  const auto states = as_processes(3, [&](int rank) {
    const auto endpoint = join_world(make(rank), {20, {}, {}});
    expect(endpoint->rank() == rank && endpoint->size() == 3, "another rank or size");
    std::vector<double> sent{rank + 0.5}, got(1);
    endpoint->send(to(*endpoint, (rank + 1) % 3, 4, place_of(sent)), {20, {}, {}});
    endpoint->receive(from(*endpoint, (rank + 2) % 3, 4, place_of(got)), {20, {}, {}});
    expect(got[0] == (rank + 2) % 3 + 0.5, "another content");
  });
  EXPECT_EQ(states, std::vector<int>(3, 0));
}

Variables torchrun(int rank) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", "3"},
          {"LOCAL_WORLD_SIZE", "3"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RUN_ID", "a/run@" + own}};
}

Variables open_mpi(int rank) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", "3"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
          {"PMIX_NAMESPACE", "test-" + own + "@1"}};
}

Variables launched(const std::string& address, int rank) {
  return {{"QUADRIGA_LAUNCH_ADDRESS", address},
          {"QUADRIGA_LAUNCH_RANK", std::to_string(rank)},
          {"QUADRIGA_LAUNCH_SIZE", "3"},
          {"QUADRIGA_LAUNCH_TOKEN", "00112233445566778899aabbccddeeff"}};
}

std::vector<std::string> left_behind() {
  std::vector<std::string> found;
  for (const auto& each :
       std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
    if (each.path().filename().string().find(own) != std::string::npos)
      found.push_back(each.path());
  return found;
}

TEST(Start, ByEachLauncher) {
  const std::string address = file_address();
  check_world([&](int rank) { return launched(address, rank); });
  check_world(torchrun);
  check_world(torchrun);  // The same name again.
  check_world(open_mpi);
  EXPECT_EQ(left_behind(), std::vector<std::string>());
}

TEST(Start, ATokenThatAnEarlierRunLeftIsntTheLast) {
  const std::string path =
      std::filesystem::temp_directory_path() /
      ("quadriga-" + std::to_string(geteuid()) + "-torchrun-a-run-" + own + "-29500.token");
  std::ofstream(path) << "00112233445566778899aabbccddeeff";
  check_world([](int rank) {
    if (rank == 0) usleep(100'000);
    return torchrun(rank);
  });
  EXPECT_EQ(left_behind(), std::vector<std::string>());
}

TEST(Start, AloneWithoutALauncher) {
  EXPECT_EQ(join_world({}, {})->size(), 1);
  EXPECT_EQ(join_world({{"RANK", "0"}, {"WORLD_SIZE", "1"}}, {})->size(), 1);
  EXPECT_EQ(join_world({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, {})->size(),
            1);
  EXPECT_EQ(join_world({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, {})->size(), 1);
  EXPECT_EQ(join_world({{"MASTER_PORT", "29500"}}, {})->size(), 1);
}

std::string refused(const Variables& variables) {
  try {
    join_world(variables, {0.05, {}, {}});
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
  return "";
}

Variables without(Variables all, const std::string& name) {
  all.erase(name);
  return all;
}

Variables with(Variables all, const std::string& name, const std::string& value) {
  all[name] = value;
  return all;
}

TEST(Start, HalfSetVariablesAreNamed) {
  const Variables torch = torchrun(1), mpi = open_mpi(1), ours = launched("file:/nowhere/x", 1);
  for (const auto& [all, name] :
       std::initializer_list<std::pair<Variables, std::string>>{{torch, "RANK"},
                                                                {torch, "WORLD_SIZE"},
                                                                {mpi, "OMPI_COMM_WORLD_RANK"},
                                                                {mpi, "OMPI_COMM_WORLD_SIZE"},
                                                                {mpi, "PMIX_NAMESPACE"},
                                                                {ours, "QUADRIGA_LAUNCH_ADDRESS"},
                                                                {ours, "QUADRIGA_LAUNCH_RANK"},
                                                                {ours, "QUADRIGA_LAUNCH_SIZE"},
                                                                {ours, "QUADRIGA_LAUNCH_TOKEN"}}) {
    const std::string said = refused(without(all, name));
    EXPECT_TRUE(said.starts_with("invalid_argument: world: " + name + " isn't set, but")) << said;
  }
  EXPECT_NE(refused(without(without(torch, "MASTER_PORT"), "TORCHELASTIC_RUN_ID"))
                .find("neither TORCHELASTIC_RUN_ID nor MASTER_PORT is set"),
            std::string::npos);
}

TEST(Start, WrongVariablesAreNamed) {
  const Variables torch = torchrun(1);
  EXPECT_EQ(refused(with(torch, "RANK", "x")),
            "invalid_argument: world: RANK is 'x'; expected 0 to 2");
  EXPECT_EQ(refused(with(torch, "RANK", "3")),
            "invalid_argument: world: RANK is '3'; expected 0 to 2");
  EXPECT_EQ(refused(with(torch, "WORLD_SIZE", "0")),
            "invalid_argument: world: WORLD_SIZE is '0'; expected 1 to 1048576");
  EXPECT_EQ(refused(with(torch, "LOCAL_WORLD_SIZE", "2")),
            "unavailable: world: torchrun has started 3 ranks on several hosts; this works on one "
            "host");
  EXPECT_TRUE(refused(torch).starts_with("deadline: world: rank 0 left no token at"));
  const std::string foreign = refused({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}});
  EXPECT_TRUE(foreign.starts_with("unavailable: world: this mpiexec has started 4 ranks"))
      << foreign;
}

}  // namespace
}  // namespace quadriga::message::testing
