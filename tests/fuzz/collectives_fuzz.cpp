// SPDX-License-Identifier: BSD-3-Clause
// tests/fuzz/collectives_fuzz.cpp: libFuzzer is all other ranks of a collective: what they say of
// it, what their devices can do, what parts and colors they have, and who of them is left.
//
// Built on request, by Clang: cmake -DCMAKE_CXX_COMPILER=clang++-14 ..., target fuzz_collectives.
#include <quadriga/error.h>
#include <quadriga/machine.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"
#include "fuzz/input.h"
#include "message/collective.h"
#include "message/device_moves.h"
#include "message/ports.h"
#include "message/waiting.h"
#include "message/wire/envelope.h"

namespace quadriga::message {
namespace {

const Patience at_once{0, {}};
// Of the first question that a world's ranks agree on (shrink.cpp).
constexpr std::uint64_t first_key = mix(mix(2) ^ 1) | 1;

// One of the others, whose messages are there before the tested rank asks for them.
class OtherRank {
 public:
  OtherRank(const SharedSegment& segment, int own)
      : messages_(segment.message_ring(own, 0), segment.shape().messages),
        read_(segment.message_ring(0, own), segment.shape().messages) {}

  void send(std::uint64_t context, int tag, ElementType type, std::span<const std::byte> content) {
    std::byte* const at = messages_.reserve();
    const std::size_t size = size_of(type);
    if (at == nullptr) return;
    const std::uint64_t count = content.size() / size;
    Envelope envelope;
    envelope.context = context;
    envelope.tag = tag;
    envelope.count = count;
    envelope.hash = ElementSignature(type).repeated(count).hash();
    envelope.set_type(ElementSignature(type));
    envelope.bytes = static_cast<std::uint16_t>(count * size);
    std::memcpy(at, &envelope, sizeof envelope);
    if (count > 0) std::memcpy(at + sizeof envelope, content.data(), count * size);
    messages_.publish();
  }
  // What the tested rank has sent it; the last agreement among it.
  void read_all(std::vector<std::byte>& agreement) {
    while (const std::byte* const at = read_.front()) {
      Envelope envelope;
      std::memcpy(&envelope, at, sizeof envelope);
      if (envelope.bytes == agreement.size())
        std::memcpy(agreement.data(), at + sizeof envelope, agreement.size());
      read_.pop();
    }
  }

 private:
  RingWriter messages_;
  RingReader read_;
};

const std::shared_ptr<DevicePort>& devices() {
  static const auto port = ports::open(Machine::parse("emulated:2,memory=64MiB"));
  return port;
}

// Numbers that a collective reads or writes, on a device if it is asked for.
class Numbers {
 public:
  Numbers(std::size_t count, bool on_device) : count_(count), host_(on_device ? 0 : count) {
    if (!on_device) return;
    memory_ = devices()->memory().allocate(0, count * sizeof(double) + 1);
    if (memory_ == nullptr) std::abort();
  }
  ~Numbers() { devices()->memory().deallocate(0, memory_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  MessageBuffer place(std::int64_t from, std::int64_t count) {
    const Layout layout = Layout::contiguous(count, ElementType::float64);
    if (memory_) return {layout, memory_ + 8 * from, devices(), 0};
    return {layout, reinterpret_cast<std::byte*>(host_.data() + from)};
  }
  MessageBuffer place() { return place(0, static_cast<std::int64_t>(count_)); }

 private:
  std::size_t count_;
  std::vector<double> host_;
  std::byte* memory_ = nullptr;
};

class World {
 public:
  explicit World(int size)
      : segment_(SharedSegment::local(size)),
        endpoint_(std::make_shared<Endpoint>(
            segment_, 0, std::vector<Member>(static_cast<std::size_t>(size), {.pid = getpid()}))),
        all_(endpoint_) {
    for (int rank = 1; rank < size; ++rank) others_.emplace_back(*segment_, rank);
  }
  ~World() {
    for (int rank = 1; rank < endpoint_->size(); ++rank) segment_->words(rank).left = 1;
    segment_->departures() = 1;
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The same collective twice: of the first one only what it says of itself is wanted, which the
  // others may repeat.
  void collective(Input& input) {
    const auto operation = input.take<std::uint8_t>();
    const std::size_t count = input.take<std::uint8_t>() % 24 * all_.size();
    const auto choice = input.take<std::uint8_t>();
    const bool on_device = (choice & 1) != 0;
    Numbers from(count, on_device), into(count, on_device);
    CommunicatorCore alone = all_.apart(++number_);
    attempt([&] { call(alone, operation, choice, from, into, count); });
    for (OtherRank& each : others_) each.read_all(agreement_);
    CommunicatorCore together = all_.apart(++number_);
    const int messages = input.take<std::uint8_t>() % 12;
    for (int i = 0; i < messages; ++i) say(input, together.context() + 1);
    attempt([&] { call(together, operation, choice, from, into, count); });
    for (OtherRank& each : others_) each.read_all(agreement_);
    if (waits_of(*segment_).empty()) std::abort();
  }
  // Any word of the questions that ranks agree on, and of what they wait for.
  void words(Input& input) {
    const auto which = input.take<std::uint8_t>();
    const int rank = input.take<std::uint8_t>() % endpoint_->size();
    const std::uint32_t place =
        static_cast<std::uint32_t>(which & 128 ? first_key : input.take<std::uint8_t>()) %
        most_agreements;
    const auto value = input.take<std::uint64_t>();
    const std::size_t word = which / 4 % segment_->proposal(place, rank).words.size();
    if (which % 4 == 0) segment_->agreement(place).key = value & 1 ? value : first_key;
    if (which % 4 == 1) segment_->agreement(place).chosen = static_cast<std::uint32_t>(value % 8);
    if (which % 4 == 2) segment_->proposal(place, rank).words[word] = value;
    if (which % 4 == 3) segment_->words(rank).waiting = value;
  }
  void shrink() {
    attempt([&] {
      const CommunicatorCore left = all_.shrink();
      if (left.rank() < 0 || left.rank() >= left.size() || left.size() > all_.size() ||
          left.group().world[static_cast<std::size_t>(left.rank())] != 0)
        std::abort();
    });
  }

 private:
  template <class Call>
  static void attempt(const Call& call) {
    try {
      call();
    } catch (const Error&) {
      // Whatever the others say is their fault; all else isn't.
    }
  }

  void say(Input& input, std::uint64_t context) {
    OtherRank& from = others_[input.take<std::uint8_t>() % others_.size()];
    const auto kind = input.take<std::uint8_t>() % 4;
    // The agreement's lane is the last one.
    if (kind < 2) {
      std::vector<std::byte> said = agreement_;
      if (kind == 1) input.fill(std::span(said).subspan(input.take<std::uint8_t>() % said.size()));
      return from.send(context, Collective::agreement_lane, ElementType::bytes, said);
    }
    const auto size = input.take<std::uint16_t>() % 1024;
    std::vector<std::byte> said(size);
    input.fill(said);
    const int lane = kind == 2 ? Collective::agreement_lane : input.take<std::uint8_t>();
    from.send(context, lane,
              input.take<std::uint8_t>() & 1 ? ElementType::bytes : ElementType::float64, said);
  }

  static void call(CommunicatorCore& ranks, int operation, int choice, Numbers& from, Numbers& into,
                   std::size_t count) {
    const int size = ranks.size();
    const auto part = static_cast<std::int64_t>(count) / size;
    const int root = choice / 2 % size;
    const auto sum = ReduceOperation::sum;
    std::vector<RankPart> sends, receives;
    std::vector<MessageBuffer> parts;
    for (int rank = 0; rank < size; ++rank) {
      sends.push_back({rank, from.place(rank * part, part)});
      receives.push_back({rank, into.place(rank * part, part)});
      parts.push_back(receives.back().place);
    }
    switch (operation % 14) {
      case 0:
        return ranks.barrier(at_once);
      case 1:
        return ranks.broadcast(into.place(), root, at_once);
      case 2:
        return ranks.reduce(from.place(), into.place(), sum, root, at_once, choice / 8 % 2 != 0);
      case 3:
        return ranks.all_reduce(from.place(), into.place(), sum, at_once, choice / 8 % 2 != 0);
      case 4: {
        const std::vector<std::int64_t> counts(static_cast<std::size_t>(size), part);
        return ranks.reduce_scatter(from.place(), into.place(0, part), counts, sum, at_once);
      }
      case 5:
        return ranks.gather(from.place(0, part), into.place(), root, at_once);
      case 6:
        return ranks.all_gather(from.place(0, part), into.place(), at_once);
      case 7:
        return ranks.all_gather_parts(from.place(0, part), parts, at_once);
      case 8:
        return ranks.scatter(from.place(), into.place(0, part), root, at_once);
      case 9:
        return ranks.all_to_all(from.place(), into.place(), at_once);
      case 10:
        return ranks.exchange(CallKind::alltoallv, -1, sends, receives, at_once);
      case 11:
        return ranks.refuse(CallKind::bcast, "this rank can't", at_once);
      default:
        if (const auto made = ranks.split(choice - 1, choice, at_once))
          if (made->group().world[static_cast<std::size_t>(made->rank())] != 0) std::abort();
    }
  }

  const std::shared_ptr<SharedSegment> segment_;
  const std::shared_ptr<Endpoint> endpoint_;
  CommunicatorCore all_;
  std::vector<OtherRank> others_;
  std::uint64_t number_ = 0;
  std::vector<std::byte> agreement_ = std::vector<std::byte>(sizeof(Announcement));
};

void run(Input input) {
  World world(2 + (input.take<std::uint8_t>() & 1));
  for (int calls = 0; calls < 8 && !input.ended(); ++calls) {
    switch (input.take<std::uint8_t>() % 8) {
      case 0:
        world.words(input);
        break;
      case 1:
        world.shrink();
        break;
      default:
        world.collective(input);
    }
  }
}

}  // namespace
}  // namespace quadriga::message

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  quadriga::message::run(
      quadriga::message::Input({reinterpret_cast<const std::byte*>(data), size}));
  return 0;
}
