// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/recorded.cpp: which launches of a variant are known, and their programs.
//
// Invariant: `mutex_` guards all of it, and is held while a program is recorded or launched: a
// graph is launched by one thread at a time.
#include "device/recorded.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "base/log.h"
#include "device/cuda/cuda_check.h"
#include "device/cuda/program.h"

namespace quadriga {
namespace {

bool same(const View& one, const View& other) noexcept {
  return one.data == other.data && one.rows == other.rows && one.cols == other.cols &&
         one.ld == other.ld && one.dtype == other.dtype;
}

/// What a variant queues follows from this.
struct Key {
  int device = 0;
  std::vector<View> operands;
  std::vector<std::byte> params;

  bool names(int wanted, const Arguments& arguments) const noexcept {
    return device == wanted && std::ranges::equal(operands, arguments.operands, same) &&
           std::ranges::equal(params, arguments.params);
  }
};

int current_device() {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "asking for the current device");
  return device;
}

class Recordings {
 public:
  explicit Recordings(Kernel variant) : variant_(std::move(variant)) {}

  void queue(const Arguments& arguments) {
    const std::lock_guard lock(mutex_);
    Recording& found = find(arguments);
    if (found.state == State::known) record(found, arguments);
    if (found.state == State::recorded)
      return found.program.replay(static_cast<cudaStream_t>(arguments.stream));
    variant_(arguments);
    if (found.state == State::unknown) found.state = State::known;
  }

 private:
  /// A launch that never comes again is not worth a recording.
  enum class State : std::uint8_t { unknown, known, recorded, refused };
  struct Recording {
    Key key;
    State state = State::unknown;
    cuda::Program program;
  };

  /// The latest comes first.
  Recording& find(const Arguments& arguments) {
    constexpr std::size_t most = 16;
    const int device = current_device();
    const auto found = std::ranges::find_if(
        all_, [&](const Recording& each) { return each.key.names(device, arguments); });
    if (found != all_.end()) {
      all_.splice(all_.begin(), all_, found);
      return all_.front();
    }
    if (all_.size() == most) all_.pop_back();
    Recording& made = all_.emplace_front();
    made.key = {device,
                {arguments.operands.begin(), arguments.operands.end()},
                {arguments.params.begin(), arguments.params.end()}};
    return made;
  }

  void record(Recording& recording, const Arguments& arguments) {
    try {
      recording.program = cuda::Program([&](cudaStream_t stream) {
        Arguments recorded = arguments;
        recorded.stream = stream;
        recorded.on_end = nullptr;
        variant_(recorded);
      });
      recording.state = State::recorded;
    } catch (const Error& error) {
      if (error.code() == Errc::device_lost) throw;
      recording.state = State::refused;
      log(LogLevel::warning, fmt::format("not recorded, but queued each time: {}", error.what()));
    }
  }

  const Kernel variant_;
  std::mutex mutex_;
  std::list<Recording> all_;
};

}  // namespace

Kernel recorded(Kernel variant) {
  return [all = std::make_shared<Recordings>(std::move(variant))](const Arguments& arguments) {
    all->queue(arguments);
  };
}

}  // namespace quadriga
