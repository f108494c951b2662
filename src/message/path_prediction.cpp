// SPDX-License-Identifier: BSD-3-Clause
// src/message/path_prediction.cpp: seconds by rates, and the choice by what the pair has found out.
#include "message/path_prediction.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/thread.h"
#include "message/communicator.h"
#include "message/device_port.h"

namespace quadriga::message {
namespace {

using MaybeSeconds = std::optional<double>;
using Clock = std::chrono::steady_clock;

double measured_rate() {
  constexpr std::size_t bytes = std::size_t{16} << 20;  // Past the caches of a core.
  const auto from = std::make_unique<std::byte[]>(bytes);
  const auto into = std::make_unique<std::byte[]>(bytes);
  double least = 1;
  for (int round = 0; round < 3; ++round) {
    const auto begin = Clock::now();
    std::memcpy(into.get(), from.get(), bytes);
    asm volatile("" : : "r"(into.get()) : "memory");
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return static_cast<double>(bytes) / std::max(least, 1e-9);
}

// Of 8 bytes from one thread of this process to another, by the slots that processes use.
double measured_latency() {
  constexpr int rounds = 100, batches = 5;
  const Patience patience{10, {}};
  const auto ends = local_endpoints(2);
  const auto play = [&](int own) {
    const CommunicatorCore communicator(ends[static_cast<std::size_t>(own)]);
    double number = 0, least = patience.seconds;
    const MessageBuffer place{Layout::contiguous(1, ElementType::float64),
                              reinterpret_cast<std::byte*>(&number)};
    for (int batch = 0; batch < batches; ++batch) {
      const auto begin = Clock::now();
      for (int round = 0; round < rounds; ++round) {
        if (own == 0) communicator.send(place, 1, 0, patience);
        communicator.receive(place, 1 - own, 0, patience);
        if (own == 1) communicator.send(place, 0, 0, patience);
      }
      const std::chrono::duration<double> took = Clock::now() - begin;
      least = std::min(least, took.count() / rounds / 2);
    }
    return least;
  };
  std::thread other = start_thread("quadriga rates", [&] {
    try {
      play(1);
    } catch (const Error&) {
      // The first one meets it, too.
    }
  });
  try {
    const double least = play(0);
    other.join();
    return least;
  } catch (...) {
    ends[0]->close({0, {}});
    other.join();
    throw;
  }
}

// Of one copy on the port's machine; nothing where no link is stated, as within a device.
MaybeSeconds copy_seconds(const DevicePort& port, SpaceId from, SpaceId into, std::size_t bytes) {
  const double seconds = port.seconds(from, into, bytes);
  return from != into && std::isfinite(seconds) ? MaybeSeconds(seconds) : std::nullopt;
}

class Paths {
 public:
  explicit Paths(const PathQuestion& question)
      : q_(question), bytes_(question.from.bytes()), host_(copies(1)) {}

  std::vector<PredictedPath> all() {
    if (q_.is_own) {
      add("copy", q_.from.on_device() ? MaybeSeconds() : MaybeSeconds(copies(2)), true,
          "a message of a rank to itself passes through the library's memory");
      return std::move(paths_);
    }
    if (q_.from.on_device() && bytes_ > 0)
      of_device();
    else
      of_host();
    return std::move(paths_);
  }

 private:
  double copies(int count) const {
    return count * static_cast<double>(bytes_) / q_.rates.bytes_per_second;
  }
  /// A message that is offered, and its end that is told.
  MaybeSeconds with_offer(MaybeSeconds seconds) const {
    return seconds ? MaybeSeconds(*seconds + 2 * q_.rates.latency_seconds) : seconds;
  }
  void add(const char* name, MaybeSeconds seconds, bool is_chosen, std::string why) {
    paths_.push_back({name, seconds, is_chosen, std::move(why)});
  }
  /// What arrives on the host goes on to the receive's device; the slower of both decides.
  MaybeSeconds onward(double seconds) const {
    if (!q_.into.on_device()) return seconds;
    const DevicePort& port = *q_.into.port;
    const SpaceId target = port.space(q_.into.device);
    const MaybeSeconds last = copy_seconds(port, host_space, target, bytes_);
    if (!last) return last;
    const MaybeSeconds block =
        copy_seconds(port, host_space, target, std::min(bytes_, PortBlocks::block_bytes));
    return std::max(seconds, *last) + *block;
  }

  void of_host() {
    const bool fits = bytes_ <= q_.slot_bytes;
    const bool lies_flat = q_.from.flat() != nullptr;
    const std::string size = fmt::format("{} bytes", bytes_);
    if (fits) {
      const MaybeSeconds there = onward(copies(2));
      add("slot", there ? MaybeSeconds(*there + q_.rates.latency_seconds) : there, true,
          fmt::format("{} fit a shared slot of {}", size, q_.slot_bytes));
    }
    const bool reads = q_.can_read && !q_.is_thread && lies_flat;
    const char* const refusal = q_.is_thread ? "the receiver is a thread of this process"
                                : !q_.can_read
                                    ? "the system doesn't let processes read each other's memory"
                                    : "the elements don't lie side by side";
    if (reads)
      add("read", with_offer(onward(host_)), !fits,
          fits ? "small messages wait for no receive" : "the receiver reads the elements in place");
    const double piece =
        static_cast<double>(std::min(bytes_, q_.piece_bytes)) / q_.rates.bytes_per_second;
    add("pieces", with_offer(onward(host_ + piece)), !fits && !reads,
        !fits && !reads ? refusal : "it takes a copy more");
  }

  void of_device() {
    const DevicePort& port = *q_.from.port;
    const SpaceId source = port.space(q_.from.device);
    const bool is_staged = q_.known != PairPath::unknown && q_.known != PairPath::mapped;
    const SpaceId target = q_.into.on_device() ? port.space(q_.into.device) : host_space;
    add("mapped", with_offer(copy_seconds(port, source, target, bytes_)), !is_staged,
        is_staged                       ? text_of(q_.known)
        : q_.known == PairPath::unknown ? "it is tried at the first message"
                                        : "the receiver has opened this rank's memory");
    const MaybeSeconds leaves = copy_seconds(port, source, host_space, bytes_);
    MaybeSeconds staged = leaves ? onward(std::max(*leaves, host_)) : leaves;
    if (staged && !q_.into.on_device())
      *staged += static_cast<double>(std::min(bytes_, q_.piece_bytes)) / q_.rates.bytes_per_second;
    add("staged", with_offer(staged), is_staged,
        is_staged ? text_of(q_.known) : "it passes through the host's memory");
  }

  const PathQuestion& q_;
  const std::size_t bytes_;
  const double host_;  ///< Seconds of one copy by the host.
  std::vector<PredictedPath> paths_;
};

}  // namespace

const HostRates& host_rates() {
  static const HostRates rates{measured_rate(), measured_latency()};
  return rates;
}

std::vector<PredictedPath> predicted_paths(const PathQuestion& question) {
  return Paths(question).all();
}

}  // namespace quadriga::message
