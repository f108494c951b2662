// SPDX-License-Identifier: BSD-3-Clause
// tests/fuzz/traffic_fuzz.cpp: libFuzzer is the other rank, and writes whatever it likes into the
// memory that both share, while this one sends, receives and withdraws.
//
// Built on request, by Clang: cmake -DCMAKE_CXX_COMPILER=clang++-14 ..., target fuzz_traffic.
#include <quadriga/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "message/traffic.h"

namespace quadriga::message {
namespace {

// Takes numbers off the input; zeros behind its end.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool ended() const noexcept { return bytes_.empty(); }
  template <class Number>
  Number take() noexcept {
    Number number{};
    const std::size_t count = std::min(sizeof number, bytes_.size());
    std::memcpy(&number, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return number;
  }

 private:
  std::span<const std::byte> bytes_;
};

class OtherRank {
 public:
  OtherRank(SharedSegment& segment, int own, int other)
      : segment_(segment),
        messages_(segment.message_ring(other, own), segment.shape().messages),
        pieces_(segment.piece_ring(other, own), segment.shape().pieces),
        own_(own),
        other_(other) {}

  void message(Input& input) {
    std::byte* const at = messages_.reserve();
    if (at == nullptr) return;
    Envelope envelope;
    // Most are nearly right, so that what comes behind the first checks is reached.
    envelope.context = input.take<std::uint8_t>() & 1;
    envelope.kind = static_cast<EnvelopeKind>(input.take<std::uint8_t>() % 7);
    envelope.tag = input.take<std::int8_t>();
    envelope.type = input.take<std::uint8_t>();
    envelope.count = input.take<std::uint16_t>();
    envelope.hash = input.take<std::uint8_t>() & 1
                        ? ElementSignature(ElementType::float64).repeated(envelope.count).hash()
                        : input.take<std::uint64_t>();
    envelope.bytes = input.take<std::uint16_t>();
    Offer offer;
    offer.bytes = input.take<std::uint32_t>();
    const std::uint8_t where = input.take<std::uint8_t>();
    offer.address = where & 1 ? reinterpret_cast<std::uint64_t>(memory_.data()) : where / 2;
    offer.index = input.take<std::uint16_t>();
    offer.number = input.take<std::uint8_t>() & 3;
    if (envelope.kind == EnvelopeKind::offer && input.take<std::uint8_t>() & 1) {
      envelope.bytes = sizeof offer;
      if (offer.index < segment_.shape().claims())
        word(other_, offer.index) = state(offer.number, ClaimState::offered);
    }
    if (envelope.kind == EnvelopeKind::device_offer && input.take<std::uint8_t>() & 1) {
      DeviceOffer device;
      device.handle.kind = static_cast<HandleKind>(input.take<std::uint8_t>() % 6);
      device.handle.bytes = input.take<std::uint32_t>();
      device.offset = input.take<std::uint32_t>();
      device.span = input.take<std::uint8_t>() & 1 ? offer.bytes : input.take<std::uint64_t>();
      device.layout_bytes = input.take<std::uint8_t>() & 127;
      envelope.bytes =
          static_cast<std::uint16_t>(sizeof offer + sizeof device + device.layout_bytes);
      if (offer.index < segment_.shape().claims())
        word(other_, offer.index) = state(offer.number, ClaimState::offered);
      std::memcpy(at + sizeof envelope + sizeof offer, &device, sizeof device);
    }
    std::memcpy(at, &envelope, sizeof envelope);
    std::memcpy(at + sizeof envelope, &offer, sizeof offer);
    messages_.publish();
  }
  void piece(Input& input) {
    std::byte* const at = pieces_.reserve();
    if (at == nullptr) return;
    PieceHead head;
    head.index = input.take<std::uint16_t>();
    head.number = input.take<std::uint8_t>() & 3;
    head.offset = input.take<std::uint32_t>();
    head.bytes = input.take<std::uint16_t>();
    std::memcpy(at, &head, sizeof head);
    pieces_.publish();
  }
  // Its own claims, or those of the rank that is tested.
  void claim(Input& input) {
    const int rank = input.take<std::uint8_t>() & 1 ? own_ : other_;
    const std::uint32_t index = input.take<std::uint16_t>() % segment_.shape().claims();
    const std::uint32_t number = input.take<std::uint8_t>() & 3;
    word(rank, index) = state(number, static_cast<ClaimState>(input.take<std::uint8_t>() % 10));
  }
  void mark(Input& input) {
    std::byte* const ring = input.take<std::uint8_t>() & 1 ? segment_.message_ring(own_, other_)
                                                           : segment_.piece_ring(own_, other_);
    auto& consumed = reinterpret_cast<ReadMark*>(ring)->consumed;
    consumed = input.take<std::uint8_t>() & 1 ? consumed + input.take<std::uint8_t>()
                                              : input.take<std::uint64_t>();
  }
  // Any word of the segment.
  void poke(Input& input) {
    auto* const base = reinterpret_cast<std::byte*>(&segment_.departures());
    const std::size_t words = segment_.shape().bytes() / sizeof(std::uint64_t);
    const std::size_t at = input.take<std::uint32_t>() % words * sizeof(std::uint64_t);
    const auto value = input.take<std::uint64_t>();
    std::memcpy(base + at, &value, sizeof value);
  }

 private:
  static std::uint64_t state(std::uint32_t number, ClaimState state) noexcept {
    return std::uint64_t{number} << 32 | static_cast<std::uint32_t>(state);
  }
  std::atomic<std::uint64_t>& word(int rank, std::uint32_t index) const noexcept {
    return segment_.claim(rank, index).word;
  }

  SharedSegment& segment_;
  RingWriter messages_;
  RingWriter pieces_;
  int own_;
  int other_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 17);
};

// The rank that must survive.
class TestedRank {
 public:
  explicit TestedRank(SharedSegment& segment)
      : traffic_(segment, 0, {{.pid = getpid()}, {.pid = getpid()}}) {
    auto group = std::make_shared<Group>();
    group->world = {0, 1};
    group_ = group;
  }
  ~TestedRank() {
    traffic_.lose(1, Presence::lost, "has ended");
    for (const auto& [transfer, memory] : transfers_)
      if (!transfer->done) std::abort();
  }
  TestedRank(const TestedRank&) = delete;
  TestedRank& operator=(const TestedRank&) = delete;

  void start(Input& input, bool sends) {
    if (transfers_.size() > 64) return;
    // Small, in several slots, and large; every other element, too, and as another type.
    const std::int64_t count =
        input.take<std::uint8_t>() * (input.take<std::uint8_t>() & 1 ? 64 : 1);
    const std::int64_t step = 1 + (input.take<std::uint8_t>() & 1);
    const ElementType type =
        input.take<std::uint8_t>() & 1 ? ElementType::int64 : ElementType::float64;
    auto memory = std::make_unique<std::vector<double>>(static_cast<std::size_t>(count * step));
    Posting posting;
    posting.place = {Layout::vector(count, 1, step, Layout::contiguous(1, type)),
                     reinterpret_cast<std::byte*>(memory->data())};
    posting.peer = !sends && input.take<std::uint8_t>() & 1 ? any_source : 1;
    posting.tag = sends ? input.take<std::uint8_t>() & 7 : (input.take<std::uint8_t>() & 7) - 1;
    posting.context = input.take<std::uint8_t>() & 1;
    posting.group = group_;
    posting.operation = sends ? CallKind::send : CallKind::recv;
    if (sends && traffic_.send_now(posting)) return;
    const TransferPtr transfer = transfer_of(posting, sends);
    transfers_.emplace_back(transfer, std::move(memory));
    traffic_.start(transfer);
  }
  // Its memory is gone at once: nobody may touch it.
  void cancel(Input& input) {
    if (transfers_.empty()) return;
    const std::size_t which = input.take<std::uint8_t>() % transfers_.size();
    const TransferPtr transfer = transfers_[which].first;
    // One that the receiver holds or has ended stays until its end is seen.
    if (!transfer->done && !traffic_.cancel(transfer)) return;
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void progress() {
    for (int round = 0; round < 16 && traffic_.progress();) ++round;
    traffic_.take_kept();
  }
  void probe(Input& input) {
    const int tag = (input.take<std::uint8_t>() & 7) - 1;
    traffic_.find({input.take<std::uint8_t>() & 1u, any_source, tag}, *group_);
  }

 private:
  std::shared_ptr<const Group> group_;
  std::vector<std::pair<TransferPtr, std::unique_ptr<std::vector<double>>>> transfers_;
  Traffic traffic_;
};

void run(Input input) {
  const auto segment = SharedSegment::local(2);
  OtherRank other(*segment, 0, 1);
  TestedRank tested(*segment);
  while (!input.ended()) {
    switch (input.take<std::uint8_t>() % 9) {
      case 0:
        tested.start(input, false);
        break;
      case 1:
        tested.start(input, true);
        break;
      case 2:
        tested.cancel(input);
        break;
      case 3:
        tested.probe(input);
        break;
      case 4:
        other.message(input);
        break;
      case 5:
        other.piece(input);
        break;
      case 6:
        other.claim(input);
        break;
      case 7:
        other.mark(input);
        break;
      default:
        other.poke(input);
    }
    tested.progress();
  }
}

}  // namespace
}  // namespace quadriga::message

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  quadriga::message::run(
      quadriga::message::Input({reinterpret_cast<const std::byte*>(data), size}));
  return 0;
}
