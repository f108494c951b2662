// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/dispatch.h: which chunk goes to which device when, and when its results come back.
//
// Pure: events come in, commands go out; it knows no thread, engine or clock. A chunk's way over a
// device is its head (copies in), its kernels and its tail (copies out):
//
//   waiting -> heading -> staged -> computed -> leaving -> gone
//
// Invariants
//   1. A device has at most `limits.device` chunks, at most one of them heading and one leaving,
//      and no more of both than it has copy engines. A link carries at most its limit of heads and
//      tails. All devices together have at most `limits.all` chunks.
//   2. The bytes of a device's chunks never exceed its memory. A chunk that fits some device fits
//      it once it is empty, and what a device has always leaves: nothing waits for ever. Blocks of
//      a chunk have a place beside those of the others by the rule of the device's arena.
//   3. A device gets a chunk when at most one of its chunks has kernels to come, and the one with
//      the least to do gets it: late, so that the order rule sees as many chunks as it can. Until
//      its first kernels have ended it gets one more: links have nothing else to carry then.
//   4. Heads come before tails, since a device without work is worse than one whose results wait;
//      the limits bound how many tails can wait. The last head of a device that has work comes
//      behind tails: else links have nothing to carry while the last kernels run.
//   5. While more chunks may be added, the adaptive order gives a device the largest one whose head
//      comes before the device has done what it has, else the smallest one. If chunks are known to
//      come in its order, the largest one in any case: none that comes later is larger.
//
// Source:  Ino, Nakagawa, Hagihara, GPU-Chariot, IEICE Trans. E96-D(12), 2013, sections 5.2 to 5.4:
//          out-of-order dispatch with limits L and G. Small chunks first and last, one copy at a
//          time on a shared link, and late assignment are ours.
#pragma once

#include <quadriga/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "memory/arena.h"

namespace quadriga {

/// What a device is to the stream.
struct StreamDevice {
  std::vector<int> links_in;   ///< Links that heads cross, by index into the limits.
  std::vector<int> links_out;  ///< The same of tails.
  std::size_t memory_bytes = std::numeric_limits<std::size_t>::max();
  std::size_t arena_bytes = 0;  ///< What it really has; 0: as much as the stream may use.
  int copy_engines = 2;
  int most_chunks = 3;  ///< The limit L: at once on the device.
  double speed = 1;     ///< Work done in a unit of time, beside the other devices.
};

struct StreamLimits {
  std::vector<int> links;                     ///< The limit G: copies at once, by link.
  int all = std::numeric_limits<int>::max();  ///< The limit M: chunks on all devices at once.
};

struct StreamChunk {
  std::uint64_t number = 0;  ///< Order of arrival.
  double size = 0;           ///< In any unit: its work, or its bytes.
  std::size_t bytes = 0;     ///< Of a device's memory.
  bool has_head = true;      ///< Something is to be copied in.
  bool has_tail = true;
  std::vector<std::size_t> blocks = {};  ///< Whose sum `bytes` is; empty: they lie anywhere.
  double head = 0;  ///< The size whose kernels last as long as its head; 0: nobody knows.
};

struct StreamCommand {
  enum class Kind : std::uint8_t { enter, leave } kind = Kind::enter;
  std::uint32_t chunk = 0;
  std::uint16_t device = 0;
};

class Dispatch {
 public:
  /// Small chunks that each device gets first, so that its kernels begin early.
  static constexpr std::uint64_t small_first = 2;

  Dispatch(std::vector<StreamDevice> devices, StreamLimits limits, Order order);

  // Events.
  /// A chunk waits for a device; returns what the other calls name it by, until it is gone.
  /// Errors: too_large if no device's memory holds it.
  std::uint32_t add(const StreamChunk& chunk);
  /// No chunk will be added any more, so that the last ones can be chosen.
  void close() noexcept { closed_ = true; }
  /// Whether those to be added are known to come as the order takes them (read_order.h).
  void expect_order(bool is_expected) noexcept { comes_in_order_ = is_expected; }
  /// The chunk's head has arrived.
  void staged(std::uint32_t chunk);
  /// Its kernels have ended.
  void computed(std::uint32_t chunk);
  /// Its tail is home. Or it failed, or isn't wanted: from any state.
  void gone(std::uint32_t chunk);
  /// The device gets no more chunks, unless it is the last. Those waiting that fit no other.
  std::vector<std::uint32_t> lose(std::uint16_t device);
  void set_order(Order order) noexcept { order_ = order; }
  void set_limits(std::vector<int> links, int all);

  /// The next thing to do before the next event; nothing: wait for one.
  std::optional<StreamCommand> next();

  std::size_t waiting() const noexcept { return waiting_.size(); }
  std::size_t on_devices() const noexcept { return on_devices_; }
  /// Where it is; only of chunks that have entered.
  std::uint16_t device_of(std::uint32_t chunk) const noexcept { return slots_[chunk].device; }
  /// Throws internal if an invariant doesn't hold.
  void validate() const;

 private:
  enum class State : std::uint8_t { none, waiting, heading, staged, computed, leaving };
  struct Slot {
    StreamChunk chunk;
    State state = State::none;
    std::uint16_t device = 0;
    std::vector<std::size_t> offsets = {};  ///< Of its blocks.
  };
  struct Holder {
    StreamDevice device;
    bool is_lost = false;
    Arena arena;  ///< Where blocks would lie if nothing else were there.
    int chunks = 0;
    int heading = 0;
    int leaving = 0;
    int to_compute = 0;     ///< Heading or staged.
    double work = 0;        ///< Sizes of these.
    std::size_t bytes = 0;  ///< Of all.
    std::uint64_t entered = 0;
    std::vector<std::uint32_t> computed;  ///< In order; their tails haven't begun.
  };

  bool can_copy(const Holder& holder, const std::vector<int>& links) const;
  static bool has_place(const Holder& holder, const StreamChunk& chunk);
  bool can_enter(const Holder& holder) const;
  static int most_to_compute(const Holder& holder);
  std::optional<std::uint16_t> next_device() const;
  bool is_last_for(const Holder& holder) const;
  std::size_t largest_memory() const;
  StreamCommand next_head(std::uint16_t device);
  std::optional<StreamCommand> next_tail();
  std::optional<std::size_t> choose(const Holder& holder) const;
  std::size_t small_rank(const Holder& holder) const;
  bool comes_in_time(const Holder& holder, const StreamChunk& chunk) const;
  void enter(std::size_t place, std::uint16_t device);
  void release_links(const std::vector<int>& links);
  void drop_head(Holder& holder);

  std::vector<Holder> devices_;
  StreamLimits limits_;
  Order order_;
  bool closed_ = false;
  bool comes_in_order_ = false;
  std::vector<int> copies_;  ///< By link, at this moment.
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> waiting_;  ///< By size, the smallest first; equal ones by number.
  std::size_t on_devices_ = 0;
};

}  // namespace quadriga
