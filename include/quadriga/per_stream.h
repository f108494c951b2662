// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/per_stream.h: what a library needs once for each stream, as an FFT's plan.
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

/// One value for each stream of each device on which a variant runs, since a plan or a handle of a
/// library must not be used on two streams at once. On cores and emulated devices a thread is a
/// stream. Values live as long as this: a codelet's variants hold it by a shared_ptr.
///
/// Example: `codelet.cuda = [plans = per_stream(make_plan)](const Arguments& a) {
///            Plan& plan = plans->of(a); ... };`
template <class OfStream>
class PerStream {
 public:
  explicit PerStream(std::function<OfStream(const Arguments&)> make) : make_(std::move(make)) {}

  /// The value of the stream that the variant is called for, made if it is the first time there.
  /// Errors: what making it throws; the next call tries again.
  OfStream& of(const Arguments& arguments) {
    const Key key{arguments.stream,
                  arguments.stream ? std::thread::id() : std::this_thread::get_id()};
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = values_.find(key); known != values_.end()) return *known->second;
    }
    // Nobody else makes that of this stream: its variants are called one after the other.
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
