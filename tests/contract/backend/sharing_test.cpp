// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/backend/sharing_test.cpp: memory that another process opens, with a process that
// does: this program again, with a handle among its variables.
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>

#include "backend_contract.h"
#include "base/peer_file.h"

extern char** environ;

namespace quadriga {
namespace {

constexpr const char* variable = "QUADRIGA_TEST_HANDLE";
constexpr std::size_t bytes = 100'000;
constexpr std::size_t inside = 4160;

std::string hexadecimal(const MemoryHandle& handle) {
  std::string text;
  const auto* const begin = reinterpret_cast<const unsigned char*>(&handle);
  for (std::size_t i = 0; i < sizeof handle; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", begin[i]);
    text += digits;
  }
  return text;
}

MemoryHandle parsed(const std::string& text) {
  MemoryHandle handle;
  auto* const begin = reinterpret_cast<unsigned char*>(&handle);
  for (std::size_t i = 0; i < sizeof handle; ++i)
    begin[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return handle;
}

class MemorySharing : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    if (!GetParam().make_sharing) GTEST_SKIP() << "shares nothing";
    Machine machine = contract_machine(GetParam().kind);
    machine.routes.push_back({1, 1, {0}});
    backend_ = GetParam().make_sharing(std::move(machine));
    in_ = backend_->create_stream(0, StreamKind::copy_in);
    out_ = backend_->create_stream(0, StreamKind::copy_out);
  }
  void write(std::byte* target, const std::vector<std::uint8_t>& from) {
    backend_->copy(in_,
                   {0, 1, reinterpret_cast<const std::byte*>(from.data()), target, from.size()});
    EXPECT_FALSE(collect(1).front().error);
  }
  std::vector<std::uint8_t> read(const std::byte* source) {
    std::vector<std::uint8_t> got(bytes);
    backend_->copy(out_, {1, 0, source, reinterpret_cast<std::byte*>(got.data()), bytes});
    EXPECT_FALSE(collect(1).front().error);
    return got;
  }
  static std::vector<std::uint8_t> content(int first) {
    std::vector<std::uint8_t> made(bytes);
    std::iota(made.begin(), made.end(), static_cast<std::uint8_t>(first));
    return made;
  }
  // Runs the importing test below in another process; whether it passed.
  static int run_importer(const MemoryHandle& handle) {
    const std::string filter =
        std::string("--gtest_filter=All/MemorySharing.Importer/") + GetParam().name;
    const std::string value =
        std::string(variable) + "=" + hexadecimal(handle) + ":" + std::to_string(getpid());
    std::vector<char*> variables;
    for (char** each = environ; *each; ++each)  // but the parent's share of the tests
      if (!std::string_view(*each).starts_with("GTEST_")) variables.push_back(*each);
    variables.push_back(const_cast<char*>(value.c_str()));
    variables.push_back(nullptr);
    char* const words[] = {const_cast<char*>("importer"), const_cast<char*>(filter.c_str()),
                           nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words, variables.data()) != 0)
      return -1;
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
  StreamId in_ = 0, out_ = 0;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MemorySharing);
INSTANTIATE_TEST_SUITE_P(All, MemorySharing, testing::ValuesIn(memory_backends()), case_name);

TEST_P(MemorySharing, Importer) {
  const char* const given = std::getenv(variable);
  if (given == nullptr) GTEST_SKIP() << "runs in a process of another test";
  const std::string text = given;
  const std::size_t colon = text.find(':');
  MemoryHandle handle = parsed(text.substr(0, colon));
  const int owner = static_cast<int>(syscall(SYS_pidfd_open, std::stoi(text.substr(colon + 1)), 0));
  const int file = handle.descriptor < 0 ? -1 : file_of_process(owner, handle.descriptor);
  std::byte* const mapped = backend_->import_memory(0, handle, file);
  EXPECT_EQ(read(mapped + inside), content(3));
  write(mapped + inside, content(77));
  std::byte* const own = backend_->allocate(0, bytes);
  const StreamId across = backend_->create_stream(0, StreamKind::peer_in);
  backend_->copy(across, {1, 1, mapped + inside, own, bytes});
  EXPECT_FALSE(collect(1).front().error);
  EXPECT_EQ(read(own), content(77));
  // A second one is the same memory; what is left of it stays open.
  std::byte* const again = backend_->import_memory(0, handle, file);
  backend_->close_memory(0, again);
  EXPECT_EQ(read(mapped + inside), content(77));
  backend_->close_memory(0, mapped);
  backend_->close_memory(0, mapped);
  handle.bytes += std::size_t{1} << 40;
  EXPECT_THROW(backend_->import_memory(0, handle, file), Error);
  handle.kind = HandleKind::none;
  EXPECT_THROW(backend_->import_memory(0, handle, file), Error);
}

TEST_P(MemorySharing, AnotherProcessReadsAndWritesIt) {
  if (std::getenv(variable)) GTEST_SKIP();
  std::byte* const before = backend_->allocate(0, 4096);
  std::byte* const memory = backend_->allocate(0, bytes + inside);
  ASSERT_NE(memory, nullptr);
  write(memory + inside, content(3));
  const MemoryExport made = backend_->export_memory(0, memory + inside);
  ASSERT_EQ(made.refusal, "");
  EXPECT_EQ(made.offset, inside);
  EXPECT_GE(made.handle.bytes, bytes + inside);
  EXPECT_EQ(run_importer(made.handle), 0);
  EXPECT_EQ(read(memory + inside), content(77));
  EXPECT_NE(before, nullptr);
}

TEST_P(MemorySharing, AnAllocationHasANumberThatNoLaterOneGets) {
  if (std::getenv(variable)) GTEST_SKIP();
  std::byte* const memory = backend_->allocate(0, bytes);
  const std::uint64_t id = backend_->export_memory(0, memory).handle.id;
  EXPECT_NE(id, 0u);
  EXPECT_EQ(backend_->allocation_at(0, memory + inside), id);
  EXPECT_EQ(backend_->export_memory(0, memory + inside).handle.id, id);
  std::byte* const other = backend_->allocate(0, bytes);
  EXPECT_NE(backend_->allocation_at(0, other), id);
  backend_->deallocate(0, memory);
  EXPECT_NE(backend_->allocation_at(0, memory), id);
  std::byte* const later = backend_->allocate(0, bytes);
  EXPECT_NE(backend_->allocation_at(0, later), id) << "at the same address: " << (later == memory);
}

TEST_P(MemorySharing, WhatIsNoMemoryOfTheDeviceIsRefused) {
  if (std::getenv(variable)) GTEST_SKIP();
  int on_host = 0;
  EXPECT_NE(backend_->export_memory(0, &on_host).refusal, "");
  EXPECT_EQ(backend_->allocation_at(0, &on_host), 0u);
}

}  // namespace
}  // namespace quadriga
