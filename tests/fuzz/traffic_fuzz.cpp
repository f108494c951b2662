// SPDX-License-Identifier: BSD-3-Clause
// tests/fuzz/traffic_fuzz.cpp: libFuzzer is the other rank, and writes whatever it likes into the
// memory that both share, while this one sends, receives and withdraws. It is a thread of this
// rank's process or another one, whose memory of devices is opened by what it says of it.
//
// Built on request, by Clang: cmake -DCMAKE_CXX_COMPILER=clang++-14 ..., target fuzz_traffic.
#include <quadriga/error.h>
#include <quadriga/machine.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "fuzz/input.h"
#include "message/ports.h"
#include "message/traffic.h"

namespace quadriga::message {
namespace {

constexpr std::size_t memory_bytes = 1 << 17;

// Memory of a device, of the tested rank's or of the other one's.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::shared_ptr<DevicePort> port, std::size_t bytes = memory_bytes)
      : port_(std::move(port)), at_(port_->memory().allocate(0, std::max<std::size_t>(bytes, 1))) {
    if (at_ == nullptr) std::abort();
  }
  ~DeviceMemory() { port_->memory().deallocate(0, at_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  const std::shared_ptr<DevicePort>& port() const noexcept { return port_; }
  std::byte* at() const noexcept { return at_; }

  static const std::shared_ptr<DevicePort>& tested() {
    static const auto made = ports::open(Machine::parse("emulated:2,memory=64MiB"));
    return made;
  }
  static const DeviceMemory& other() {
    static const DeviceMemory made(ports::open(Machine::parse("emulated:1,memory=4MiB")));
    return made;
  }

 private:
  std::shared_ptr<DevicePort> port_;
  std::byte* at_;
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
      DeviceOffer device = device_offer(input, offer);
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
  // Of its memory, of which nothing, one thing or more isn't true.
  DeviceOffer device_offer(Input& input, const Offer& offer) {
    const DeviceMemory& memory = DeviceMemory::other();
    const MemoryExport made = memory.port()->memory().export_memory(0, memory.at());
    DeviceOffer device;
    device.handle = made.handle;
    device.offset = made.offset + (input.take<std::uint8_t>() & 7);
    device.base = reinterpret_cast<std::uintptr_t>(memory.at()) - made.offset;
    device.span = offer.bytes;
    const auto wrong = input.take<std::uint8_t>();
    if (wrong & 1) device.handle.kind = static_cast<HandleKind>(input.take<std::uint8_t>() % 6);
    if (wrong & 2) device.handle.bytes = input.take<std::uint64_t>();
    if (wrong & 4) device.handle.offset = input.take<std::uint32_t>();
    if (wrong & 8) device.handle.descriptor = input.take<std::int8_t>();
    if (wrong & 16) device.offset = input.take<std::uint64_t>();
    if (wrong & 32) device.span = input.take<std::uint64_t>();
    if (wrong & 64) device.base += input.take<std::uint16_t>() * std::uint64_t{4096};
    if (wrong & 128) {
      device.handle.id += input.take<std::uint8_t>();
      device.handle.device = input.take<std::uint8_t>() & 3;
      device.layout_bytes = input.take<std::uint8_t>() & 127;
    }
    return device;
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
  std::vector<std::byte> memory_ = std::vector<std::byte>(memory_bytes);
};

// A descriptor of this process, which stands for another one.
int own_process() {
  static const int process = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  if (process < 0) std::abort();
  return process;
}

// Where a message of the tested rank lies.
struct Elements {
  std::vector<double> host;
  std::optional<DeviceMemory> device;
};

// The rank that must survive.
class TestedRank {
 public:
  TestedRank(SharedSegment& segment, bool other_process)
      : traffic_(
            segment, 0,
            {{.pid = getpid()}, {.process = other_process ? own_process() : -1, .pid = getpid()}}) {
    auto group = std::make_shared<Group>();
    group->world = {0, 1};
    group_ = group;
  }
  ~TestedRank() {
    traffic_.lose(1, Presence::lost, "has ended");
    // What devices do by then ends by itself.
    for (const auto& [transfer, memory] : transfers_)
      while (!transfer->done && transfer->writer) traffic_.progress();
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
    const auto numbers = static_cast<std::size_t>(count * step);
    auto memory = std::make_unique<Elements>();
    Posting posting;
    posting.place.layout = Layout::vector(count, 1, step, Layout::contiguous(1, type));
    if (input.take<std::uint8_t>() & 1) {
      memory->device.emplace(DeviceMemory::tested(), numbers * sizeof(double));
      posting.place.data = memory->device->at();
      posting.place.port = memory->device->port();
    } else {
      memory->host.resize(numbers);
      posting.place.data = reinterpret_cast<std::byte*>(memory->host.data());
    }
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
    traffic_.take_left();
  }
  void probe(Input& input) {
    const int tag = (input.take<std::uint8_t>() & 7) - 1;
    traffic_.find({input.take<std::uint8_t>() & 1u, any_source, tag}, *group_);
  }

 private:
  std::shared_ptr<const Group> group_;
  std::vector<std::pair<TransferPtr, std::unique_ptr<Elements>>> transfers_;
  Traffic traffic_;
};

void run(Input input) {
  const auto segment = SharedSegment::local(2);
  OtherRank other(*segment, 0, 1);
  TestedRank tested(*segment, (input.take<std::uint8_t>() & 1) != 0);
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
