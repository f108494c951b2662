// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/file_test.cpp: files as memory spaces, alone and beside emulated devices.
#include "device/file/file_backend.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/spill_file.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.h"
#include "device/factory.h"
#include "full_disk.h"

namespace quadriga {
namespace {

constexpr std::size_t megabyte = 1'000'000;

/// An emulated device and a file, each joined to the host.
Machine machine_with_file(const std::string& path) {
  Machine machine = Machine::parse("emulated:1,memory=8MiB,h2d=1GB/s,d2h=1GB/s,latency=0us");
  Device file;
  file.name = "file";
  file.kind = DeviceKind::file;
  file.space = 2;
  file.memory_bytes = 8 * megabyte;
  file.path = path;
  machine.devices.push_back(file);
  machine.links.push_back({.name = "disk", .bytes_per_second = 1e8});
  const int disk = static_cast<int>(machine.links.size()) - 1;
  machine.routes.push_back({.from = host_space, .to = 2, .links = {disk}});
  machine.routes.push_back({.from = 2, .to = host_space, .links = {disk}});
  return machine;
}

std::string fresh_path() {
  return (std::filesystem::temp_directory_path() / ("quadriga-file-" + std::to_string(::getpid())))
      .string();
}

/// Waits for so many ends; when the last one ended.
Nanoseconds await(Backend& backend, std::size_t count) {
  Nanoseconds last = 0;
  while (count > 0) {
    Completion ended;
    if (backend.next_completion({&ended, 1}, never) == 0) continue;
    EXPECT_FALSE(ended.error);
    last = ended.end;
    --count;
  }
  return last;
}

/// Out to the file by columns, and back as one run, after an event of the way out.
void expect_round_trip(Backend& backend, DeviceId device, SpaceId space) {
  constexpr std::size_t width = 1000, columns = 7, pitch = 1500;
  std::vector<unsigned char> from(pitch * columns), back(width * columns, 0);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 % 251);
  std::byte* const skipped = backend.allocate(device, 4096);
  std::byte* const block = backend.allocate(device, width * columns);
  ASSERT_NE(block, nullptr);
  EXPECT_NE(skipped, block);
  EXPECT_EQ(backend.allocate(device, 9 * megabyte), nullptr);
  const StreamId in = backend.create_stream(device, StreamKind::copy_in);
  const StreamId out = backend.create_stream(device, StreamKind::copy_out);
  const auto bytes = [](auto& values) { return reinterpret_cast<std::byte*>(values.data()); };
  const Event written =
      backend.copy(in, {host_space, space, bytes(from), block, width, columns, pitch, width});
  backend.wait(out, written);
  backend.copy(out, {space, host_space, block, bytes(back), width * columns});
  await(backend, 2);
  for (std::size_t column = 0; column < columns; ++column)
    EXPECT_EQ(std::memcmp(&back[column * width], &from[column * pitch], width), 0) << column;
}

TEST(FileBackend, WhatIsWrittenIsReadBeside) {
  const std::string path = fresh_path();
  const auto backend = make_backend(machine_with_file(path));
  EXPECT_FALSE(std::filesystem::exists(path)) << "it goes with its process";
  expect_round_trip(*backend, 1, 2);
  expect_round_trip(*backend, 0, 1);
}

/// Ends of so many operations: true for those that failed with a word of the file.
std::vector<bool> failures(Backend& backend, std::size_t count, const std::string& word) {
  std::vector<bool> failed;
  while (failed.size() < count) {
    Completion ended;
    if (backend.next_completion({&ended, 1}, never) == 0) continue;
    failed.push_back(static_cast<bool>(ended.error));
    if (!ended.error) continue;
    try {
      std::rethrow_exception(ended.error);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::io);
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
  return failed;
}

TEST(FileBackend, AWriteThatTheDiskHasNoRoomForFailsAndNoOther) {
  const std::string path = fresh_path();
  const auto backend = make_backend(machine_with_file(path));
  std::vector<std::byte> values(4 * megabyte);
  std::byte* const first = backend->allocate(1, 4 * megabyte);
  std::byte* const second = backend->allocate(1, 3 * megabyte);
  const StreamId in = backend->create_stream(1, StreamKind::copy_in);
  const FullDisk disk(5 * megabyte);
  const auto write = [&](std::byte* to, std::size_t bytes) {
    backend->copy(in, {host_space, 2, values.data(), to, bytes});
  };
  write(first, 4 * megabyte);
  write(second, 3 * megabyte);
  write(first, 2 * megabyte);
  EXPECT_EQ(failures(*backend, 3, path), (std::vector<bool>{false, true, false}));
}

TEST(FileBackend, TheVirtualClockChargesItsLink) {
  const auto backend = make_virtual_backend(machine_with_file(""));
  std::vector<std::byte> values(megabyte);
  std::byte* const block = backend->allocate(1, megabyte);
  backend->copy(backend->create_stream(1, StreamKind::copy_in),
                {host_space, 2, values.data(), block, megabyte});
  EXPECT_EQ(await(*backend, 1), 10'000'000);
}

TEST(FileBackend, RefusesWhatItCannotDo) {
  const std::string path = fresh_path();
  const auto said = [](auto&& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  Machine alone = machine_with_file("/nonexistent/folder/file");
  EXPECT_NE(said([&] { make_backend(alone); }).find("/nonexistent/folder/file"), std::string::npos);
  alone.devices.back().path = path;
  alone.devices.back().memory_bytes = std::size_t{1} << 60;
  EXPECT_NE(said([&] { make_backend(alone); }), "");
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(Machine::from_json(machine_with_file(path).to_json()).devices.back().path, path);
}

/// A setting for as long as it lives.
class WithSetting {
 public:
  WithSetting(std::string key, std::string_view value) : key_(std::move(key)) {
    Config::global().set(key_, value);
  }
  ~WithSetting() { Config::global().unset(key_); }
  WithSetting(const WithSetting&) = delete;
  WithSetting& operator=(const WithSetting&) = delete;

 private:
  std::string key_;
};

TEST(SpillSpace, IsADeviceWithALinkForEachDirection) {
  const WithSetting rates("spill_rate", "2GB/s, 4GB/s");
  const Machine alone = Machine::parse("emulated:2,memory=8MiB");
  const Machine machine = with_spill(alone, fresh_path());
  ASSERT_EQ(machine.devices.size(), 3u);
  const Device& spill = machine.devices.back();
  EXPECT_EQ(spill.name, "spill");
  EXPECT_EQ(name(spill.kind), "file");
  EXPECT_EQ(spill.path, fresh_path());
  EXPECT_GT(spill.memory_bytes, megabyte);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(host_space, spill.space, 2e9), 1);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(spill.space, host_space, 2e9), 0.5);
  EXPECT_EQ(Machine::from_json(machine.to_json()).to_json(), machine.to_json());
  EXPECT_EQ(with_spill(machine, "another").to_json(), machine.to_json()) << "it has one";
}

TEST(SpillSpace, RatesAreMeasuredUnlessTheyAreStated) {
  const Machine alone = Machine::parse("emulated:1,memory=8MiB");
  const auto rate = [](const Machine& machine, int link) {
    return machine.links[machine.links.size() - static_cast<std::size_t>(link)].bytes_per_second;
  };
  const Machine measured = with_spill(alone, fresh_path());
  EXPECT_GT(rate(measured, 1), 1e5);
  EXPECT_GT(rate(measured, 2), 1e5);
  EXPECT_EQ(rate(with_spill(alone, fresh_path()), 1), rate(measured, 1)) << "once is enough";
  const Machine supposed = with_spill(alone, fresh_path(), false);
  EXPECT_EQ(rate(supposed, 1), 1e9);
  EXPECT_EQ(rate(supposed, 2), 1e9);
  const WithSetting stated("spill_rate", "3GB/s");
  EXPECT_EQ(rate(with_spill(alone, fresh_path()), 1), 3e9);
  EXPECT_EQ(rate(with_spill(alone, fresh_path(), false), 2), 3e9);
}

TEST(SpillSpace, ADescribedMachineKeepsItsFile) {
  const std::string path = fresh_path() + ".json";
  std::ofstream(path) << with_spill(Machine::parse("emulated:2,memory=8MiB"), "x", false).to_json();
  const Machine machine = Machine::parse("machine=" + path + ":1,memory=4MiB,h2d=1GB/s,peer=2GB/s");
  std::filesystem::remove(path);
  ASSERT_EQ(machine.devices.size(), 2u) << "the file counts as no accelerator";
  EXPECT_EQ(machine.devices[0].memory_bytes, std::size_t{4} << 20);
  EXPECT_EQ(name(machine.devices[1].kind), "file");
  EXPECT_GT(machine.devices[1].memory_bytes, std::size_t{4} << 20);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(host_space, machine.devices[1].space, 1e9), 1);
  EXPECT_EQ(machine.route(1, 2), nullptr);
}

}  // namespace
}  // namespace quadriga
