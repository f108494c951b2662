// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/host_body.cpp: a host function between two copies.
#include "gpu/host_body.h"

#include <array>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "device/cuda/cuda_check.h"

namespace quadriga {
namespace {

using cuda::check;

// Pinned memory by powers of two; what was given back serves again, for pinning takes long.
class PinnedPool {
 public:
  void* take(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    std::vector<void*>& unused = unused_[std::bit_width(bytes)];
    if (unused.empty()) {
      void* data = nullptr;
      check(cudaHostAlloc(&data, std::size_t{1} << std::bit_width(bytes), cudaHostAllocPortable),
            "allocating pinned memory");
      return data;
    }
    void* const data = unused.back();
    unused.pop_back();
    return data;
  }
  void give_back(void* data, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    unused_[std::bit_width(bytes)].push_back(data);
  }
  static PinnedPool& instance() {
    static auto* const pool = new PinnedPool;  // the runtime may be gone at the end
    return *pool;
  }

 private:
  std::mutex mutex_;
  std::array<std::vector<void*>, 64> unused_;
};

// What pageable memory holds is copied when the call is made, not in the order of the stream.
struct Pinned {
  explicit Pinned(std::size_t size) : data(PinnedPool::instance().take(size)), bytes(size) {}
  ~Pinned() { PinnedPool::instance().give_back(data, bytes); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* data = nullptr;
  std::size_t bytes;
};

struct Call {
  Kernel body;
  std::vector<View> views;
  std::vector<std::byte> params;
  std::deque<Pinned> values;
  std::span<std::byte> workspace;
  std::exception_ptr error;
};

// What streams hold of calls. A lost device never lets go of its own.
class Held {
 public:
  void* add(const std::shared_ptr<Call>& call) {
    auto held = std::make_unique<std::shared_ptr<Call>>(call);
    void* const key = held.get();
    const std::lock_guard lock(mutex_);
    all_[key] = std::move(held);
    return key;
  }
  std::shared_ptr<Call> take(void* key) {
    const std::lock_guard lock(mutex_);
    return std::move(*all_.extract(key).mapped());
  }
  static Held& instance() {
    static auto* const held = new Held;
    return *held;
  }

 private:
  std::mutex mutex_;
  std::map<void*, std::unique_ptr<std::shared_ptr<Call>>> all_;
};

// Its owner may let go of it before, when the device is lost.
void run(void* data) {
  const std::shared_ptr<Call> call = Held::instance().take(data);
  try {
    Arguments arguments{call->views, call->params, nullptr};
    arguments.workspace = call->workspace;
    call->body(arguments);
  } catch (...) {
    call->error = std::current_exception();
  }
}

void forget(void* data) { Held::instance().take(data); }

std::size_t extent_of(const View& view) {
  return static_cast<std::size_t>(view.ld * view.cols) * size_of(view.dtype);
}

}  // namespace

Kernel on_stream(Kernel body) {
  return [body = std::move(body)](const Arguments& arguments) {
    const auto stream = static_cast<cudaStream_t>(arguments.stream);
    const auto call = std::make_shared<Call>();
    call->body = body;
    call->views.assign(arguments.operands.begin(), arguments.operands.end());
    call->params.assign(arguments.params.begin(), arguments.params.end());
    for (View& view : call->views) {
      const Pinned& values = call->values.emplace_back(extent_of(view));
      check(cudaMemcpyAsync(values.data, view.data, values.bytes, cudaMemcpyDeviceToHost, stream),
            "a copy of an operand");
      view.data = values.data;
    }
    if (const std::size_t bytes = arguments.workspace.size(); bytes > 0)
      call->workspace = {static_cast<std::byte*>(call->values.emplace_back(bytes).data), bytes};
    check(cudaLaunchHostFunc(stream, run, Held::instance().add(call)), "a host function");
    // Whoever else has this memory finds in it what the body wrote.
    if (!call->workspace.empty())
      check(cudaMemcpyAsync(arguments.workspace.data(), call->workspace.data(),
                            call->workspace.size(), cudaMemcpyHostToDevice, stream),
            "a copy of a workspace");
    for (std::size_t i = 0; i < call->views.size(); ++i)
      check(cudaMemcpyAsync(arguments.operands[i].data, call->values[i].data, call->values[i].bytes,
                            cudaMemcpyHostToDevice, stream),
            "a copy of an operand");
    if (!arguments.on_end) {
      check(cudaLaunchHostFunc(stream, forget, Held::instance().add(call)), "a host function");
      return;
    }
    *arguments.on_end = [call] {
      if (call->error) std::rethrow_exception(call->error);
    };
  };
}

}  // namespace quadriga
