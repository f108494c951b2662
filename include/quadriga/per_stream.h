// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/per_stream.h: library objects needed once per stream, such as an FFT plan.
#pragma once

#include <quadriga/codelet.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace quadriga {

/// One value for each stream of each device on which a variant runs, since two streams must not use
/// a library's plan or handle at once. On cores and emulated devices each thread is a stream.
/// Values live as long as this object, which a codelet's variants hold through a shared_ptr.
///
/// Example: `codelet.cuda = [plans = per_stream(make_plan)](const Arguments& a) {
///            Plan& plan = plans->of(a); ... };`
template <class OfStream>
class PerStream {
 public:
  explicit PerStream(std::function<OfStream(const Arguments&)> make) : make_(std::move(make)) {}

  /// The value of the stream that the variant is called for, created on first use there.
  /// Errors: what `make` throws; the next call tries again.
  OfStream& of(const Arguments& arguments) {
    const Key key{arguments.stream,
                  arguments.stream ? std::thread::id() : std::this_thread::get_id()};
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = values_.find(key); known != values_.end()) return *known->second;
    }
    // No other thread creates this stream's value: its variants are called one after the other.
    auto made = std::make_unique<OfStream>(make_(arguments));
    const std::lock_guard lock(mutex_);
    return *(values_[key] = std::move(made));
  }

 private:
  using Key = std::pair<void*, std::thread::id>;
  const std::function<OfStream(const Arguments&)> make_;
  std::mutex mutex_;
  std::map<Key, std::unique_ptr<OfStream>> values_;
};

/// `make` is called with the arguments of the variant that needs the value first.
template <class Make>
auto per_stream(Make make) {
  using OfStream = std::invoke_result_t<Make, const Arguments&>;
  return std::make_shared<PerStream<OfStream>>(std::move(make));
}

}  // namespace quadriga
