// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/kinds_test.cpp: the table of the kinds of devices, and what one row of it does:
// names, descriptions and device lists.
#include "device/kinds.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>

#include "device/factory.h"
#include "polled_backend.h"

namespace quadriga {
namespace {

std::unique_ptr<Backend> make_polled(const Machine& machine, const BackendOptions&) {
  return std::make_unique<PolledBackend>(machine);
}

int present = 0;  // Devices of the kind that discover() finds.

Machine discover() {
  Machine machine;
  machine.name = "polled";
  for (int i = 0; i < present; ++i) {
    Device device;
    device.name = "polled" + std::to_string(i);
    device.kind = device_kind("polled");
    device.space = static_cast<SpaceId>(i + 1);
    device.memory_bytes = 4096;
    machine.devices.push_back(device);
  }
  return machine;
}

DeviceKind polled() {
  const KindOfDevice* const known = find_kind("polled");
  return known ? known->kind
               : add_kind({.name = "polled",
                           .rates = "slow",
                           .discover = discover,
                           .absence = [] { return present > 0 ? "" : "no polled device"; },
                           .make = make_polled});
}

template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Kinds, HaveNames) {
  EXPECT_EQ(name(DeviceKind::cpu), "cpu");
  EXPECT_EQ(name(DeviceKind::emulated), "emulated");
  EXPECT_EQ(name(DeviceKind::cuda), "cuda");
  EXPECT_EQ(name(static_cast<DeviceKind>(200)), "unknown");
  for (const DeviceKind kind : all_kinds()) EXPECT_EQ(device_kind(name(kind)), kind);
  EXPECT_EQ(device_kind("polled"), polled());
}

TEST(Kinds, ThatNobodyAddedAreRefusedWithThoseThatAre) {
  const std::string message = refusal([] { device_kind("abacus"); });
  EXPECT_NE(message.find("'abacus'; known are cpu, emulated, cuda"), std::string::npos) << message;
}

TEST(Kinds, RunVariantsOfTheirOwnUnlessStated) {
  EXPECT_EQ(variants_of(DeviceKind::cpu), DeviceKind::cpu);
  EXPECT_EQ(variants_of(DeviceKind::emulated), DeviceKind::cpu);
  EXPECT_EQ(variants_of(DeviceKind::cuda), DeviceKind::cuda);
  EXPECT_EQ(variants_of(polled()), polled());
}

TEST(Kinds, RowsThatMeanNothingAreRefused) {
  EXPECT_NE(refusal([] { add_kind({.name = "", .make = make_polled}); }), "accepted");
  EXPECT_NE(refusal([] { add_kind({.name = "a,b", .make = make_polled}); }), "accepted");
  EXPECT_NE(refusal([] { add_kind({.name = "gpu", .make = make_polled}); }), "accepted");
  EXPECT_NE(refusal([] { add_kind({.name = "lazy"}); }), "accepted");
  EXPECT_NE(refusal([] { add_kind({.name = "cuda", .make = make_polled}); }).find("already"),
            std::string::npos);
}

TEST(Kinds, StandInDescriptions) {
  const DeviceKind kind = polled();
  const Machine machine = Machine::from_json(
      R"({"name": "m", "devices": [{"name": "p0", "kind": "polled", "memory": 4096}]})");
  EXPECT_EQ(machine.devices.front().kind, kind);
  EXPECT_EQ(machine.devices.front().rates, "slow");
  EXPECT_EQ(Machine::from_json(machine.to_json()).devices.front().kind, kind);
  const std::string message = refusal([] {
    Machine::from_json(R"({"name": "m", "devices": [{"name": "p0", "kind": "abacus"}]})");
  });
  for (const char* const known : {"\"gpu\"", "\"cpu\"", "\"emulated\"", "\"cuda\"", "\"polled\""})
    EXPECT_NE(message.find(known), std::string::npos) << message;
}

TEST(Kinds, StandInDeviceLists) {
  const DeviceKind kind = polled();
  present = 3;
  const Machine machine = Machine::parse("polled:2;emulated:1");
  ASSERT_EQ(machine.devices.size(), 3u);
  EXPECT_EQ(machine.devices[1].kind, kind);
  EXPECT_EQ(machine.devices[2].kind, DeviceKind::emulated);
  EXPECT_NE(refusal([] { Machine::parse("polled:4"); }).find("3 devices of kind polled"),
            std::string::npos);
  EXPECT_NE(refusal([] { Machine::parse("abacus"); }).find("'polled[:N]'"), std::string::npos);
  present = 0;
  EXPECT_NE(refusal([] { Machine::parse("polled"); }).find("no polled device"), std::string::npos);
}

TEST(Kinds, ThatAreFoundAreUsedByDefault) {
  polled();
  present = 2;
  const auto found = [] {
    return std::ranges::count(Machine::parse("auto").devices, polled(), &Device::kind);
  };
  EXPECT_EQ(found(), 2);
  present = 0;
  EXPECT_EQ(found(), 0);
}

}  // namespace
}  // namespace quadriga
