// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/arrival_test.cpp: slots of another rank, of which nothing is believed.
#include "message/wire/arrival.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "message/layout/code.h"

namespace quadriga::message::testing {
namespace {

constexpr std::size_t capacity = 512;
constexpr std::uint32_t claims = 16;

// A slot with an envelope and what follows it.
class Slot {
 public:
  Slot() { envelope.kind = EnvelopeKind::whole; }
  template <class T>
  Slot& with(const T& content) {
    std::memcpy(bytes_.data() + sizeof envelope + envelope.bytes, &content, sizeof content);
    envelope.bytes = static_cast<std::uint16_t>(envelope.bytes + sizeof content);
    return *this;
  }
  Slot& with_code(const std::vector<std::byte>& code) {
    std::memcpy(bytes_.data() + sizeof envelope + envelope.bytes, code.data(), code.size());
    envelope.bytes = static_cast<std::uint16_t>(envelope.bytes + code.size());
    return *this;
  }
  std::variant<Arrival, SlotFault> read() {
    std::memcpy(bytes_.data(), &envelope, sizeof envelope);
    return arrival_of(bytes_.data(), capacity, claims);
  }
  std::string fault() {
    const auto found = read();
    const auto* const fault = std::get_if<SlotFault>(&found);
    return fault != nullptr ? fault->text : "it is valid";
  }
  Envelope envelope;

 private:
  alignas(8) std::array<std::byte, capacity> bytes_{};
};

TEST(Arrival, AWholeMessageHasTheBytesOfItsEnvelope) {
  const auto read = Slot().with(1.5).with(2.5).read();
  const Arrival& arrival = std::get<Arrival>(read);
  EXPECT_EQ(arrival.bytes, 16U);
  EXPECT_FALSE(arrival.is_offer());
}

TEST(Arrival, EnvelopesThatArentValidAreRefused) {
  Slot long_one;
  long_one.envelope.bytes = capacity - sizeof(Envelope) + 1;
  Slot tagged;
  tagged.envelope.tag = -1;
  Slot typed;
  typed.envelope.type = element_types;
  for (Slot* const each : {&long_one, &tagged, &typed})
    EXPECT_EQ(each->fault(), "sent an envelope that isn't valid");
  Slot unknown;
  unknown.envelope.kind = static_cast<EnvelopeKind>(9);
  EXPECT_EQ(unknown.fault(), "sent an envelope of no known kind");
  Slot notice;
  notice.envelope.kind = EnvelopeKind::forget;
  EXPECT_EQ(notice.fault(), "sent a notice of a wrong size");
}

TEST(Arrival, AnOfferNamesAClaimAndMoreBytesThanASlotHas) {
  const auto slot_of = [](const Offer& offer) {
    Slot slot;
    slot.envelope.kind = EnvelopeKind::offer;
    return slot.with(offer);
  };
  const auto read = slot_of({4096, 64, 3, 7}).read();
  const Arrival& arrival = std::get<Arrival>(read);
  EXPECT_TRUE(arrival.is_offer());
  EXPECT_EQ(arrival.bytes, 4096U);
  EXPECT_EQ(arrival.claim(), (Claim{3, 7}));
  for (const Offer& wrong :
       {Offer{4096, 64, claims, 1}, Offer{0, 64, 0, 1},
        Offer{capacity - sizeof(Envelope), 64, 0, 1}, Offer{std::uint64_t{1} << 62, 64, 0, 1}})
    EXPECT_EQ(slot_of(wrong).fault(), "sent an offer that isn't valid");
  EXPECT_EQ(slot_of({4096, 64, 3, 7}).with('x').fault(), "sent an offer of a wrong size");
}

// A column of doubles in a device's memory.
struct DeviceSlot {
  Layout layout = Layout::vector(100, 1, 4, ElementType::float64);
  std::vector<std::byte> code = encoded(layout);
  Offer offer{800, 0, 1, 1};
  DeviceOffer device;
  Slot slot;

  DeviceSlot() {
    device.handle.kind = HandleKind::memory_file;
    device.handle.bytes = 8192;
    device.span = 99 * 32 + 8;
    device.layout_bytes = static_cast<std::uint32_t>(code.size());
    slot.envelope.kind = EnvelopeKind::device_offer;
    slot.envelope.count = layout.elements().count();
    slot.envelope.hash = layout.elements().hash();
    slot.envelope.set_type(layout.elements());
  }
  Slot& made() { return slot.with(offer).with(device).with_code(code); }
};

TEST(Arrival, AnOfferOfADevicesMemorySaysWhatItsLayoutSays) {
  DeviceSlot right;
  const auto read = right.made().read();
  const Arrival& arrival = std::get<Arrival>(read);
  ASSERT_TRUE(arrival.device);
  EXPECT_EQ(arrival.device->layout, right.layout);
  const std::string why = "sent an offer of memory that isn't valid";
  DeviceSlot outside, behind, spans, first, cut, other, kind, endless, wrapped;
  outside.device.offset = 8192;
  behind.device.offset = 8193;
  spans.device.span += 8;
  first.device.first = 8;
  cut.device.layout_bytes -= 1;
  other.slot.envelope.hash ^= 1;
  kind.device.handle.kind = static_cast<HandleKind>(77);
  endless.device.handle.bytes = std::uint64_t{1} << 62;
  wrapped.device.base = ~std::uint64_t{8190};  // Its 8192 bytes end behind all addresses.
  for (DeviceSlot* const each :
       {&outside, &behind, &spans, &first, &cut, &other, &kind, &endless, &wrapped})
    EXPECT_EQ(each->made().fault(), why);
  DeviceSlot short_one;
  EXPECT_EQ(short_one.slot.with(short_one.offer).with('x').fault(), why);
}

}  // namespace
}  // namespace quadriga::message::testing
