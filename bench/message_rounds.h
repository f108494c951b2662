// SPDX-License-Identifier: BSD-3-Clause
// bench/message_rounds.h: what two processes exchange to be timed, for us and for a reference.
//
// Both sides run the same functions; the first one has the result, the second one 0.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace quadriga::bench {

/// One side of a pair. Buffers are parts of equal size, one after the other.
class MessagePair {
 public:
  virtual ~MessagePair() = default;
  virtual bool is_first() const = 0;
  /// The memory that the calls below mean, until the next call.
  virtual void use(std::byte* data, std::size_t bytes, int parts) = 0;
  virtual void send(int part) = 0;
  virtual void receive(int part) = 0;
  /// All parts, started one after the other and then waited for.
  virtual void send_all() = 0;
  virtual void receive_all() = 0;
};

class MessageRounds {
 public:
  MessageRounds(MessagePair& pair, std::size_t bytes, int batches)
      : pair_(pair), bytes_(bytes), batches_(batches) {}

  /// Seconds one way: half of what a message and its return take; the median of batches.
  double one_way() {
    const int rounds =
        static_cast<int>(std::clamp<std::size_t>(most_bytes / (bytes_ + 4096), 1, 1000));
    begin(1);
    std::vector<double> seconds;
    for (int batch = 0; batch <= batches_; ++batch) {
      const auto start = Clock::now();
      for (int i = 0; i < rounds; ++i) {
        if (pair_.is_first()) pair_.send(0);
        pair_.receive(0);
        if (!pair_.is_first()) pair_.send(0);
      }
      if (batch > 0) seconds.push_back(since(start) / rounds / 2);
    }
    check();
    return result(seconds);
  }

  /// Bytes a second of many messages in flight; the median of batches.
  double rate() {
    const int parts = static_cast<int>(std::clamp<std::size_t>(window_bytes / bytes_, 2, 64));
    begin(parts);
    // The answer, which ends a batch, is a message of its own.
    std::byte answer{};
    std::vector<double> rates;
    for (int batch = 0; batch <= batches_; ++batch) {
      pair_.use(memory_.data(), bytes_, parts);
      const auto start = Clock::now();
      pair_.is_first() ? pair_.send_all() : pair_.receive_all();
      pair_.use(&answer, 1, 1);
      pair_.is_first() ? pair_.receive(0) : pair_.send(0);
      if (batch > 0) rates.push_back(static_cast<double>(memory_.size()) / since(start));
    }
    check();
    return result(rates);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t most_bytes = std::size_t{4} << 20;
  static constexpr std::size_t window_bytes = std::size_t{64} << 20;

  static double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  static std::byte value(std::size_t at) { return static_cast<std::byte>(at * 31 + at / 4096); }

  void begin(int parts) {
    memory_.assign(bytes_ * static_cast<std::size_t>(parts), std::byte{0});
    if (pair_.is_first())
      for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = value(i);
    pair_.use(memory_.data(), bytes_, parts);
  }
  // Both must have what the first one began with.
  void check() const {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (memory_[i] != value(i)) throw std::runtime_error("a message arrived with other bytes");
  }
  double result(std::vector<double>& values) const {
    if (!pair_.is_first()) return 0;
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  }

  MessagePair& pair_;
  const std::size_t bytes_;
  const int batches_;
  std::vector<std::byte> memory_;
};

/// Numbers with commas between them.
inline std::vector<std::size_t> numbers_of(const std::string& text) {
  std::vector<std::size_t> numbers;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t used = 0;
    numbers.push_back(std::stoull(text.substr(at), &used));
    at += used + 1;
  }
  return numbers;
}

/// Binds this process to the core of its side; without cores it stays where the system puts it.
inline void pin_to(const std::vector<std::size_t>& cores, bool is_first) {
  if (cores.size() < 2) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[is_first ? 0 : 1], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error("can't bind a process to its core");
}

}  // namespace quadriga::bench
