// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/streams.h: CUDA's streams, events and memory as the CUDA backend sees them, made
// of threads and memory of the host.
//
// Invariants
//   1. Each stream has a thread, which runs its operations in order, and now and then sleeps before
//      one, so that what doesn't wait for what it needs is found out.
//   2. An event's `recorded` counts its records, `reached` the latest that a stream got to. Who
//      waits for it waits for what was recorded when the wait was queued, and looks again when
//      `stirred` has changed. Events live to the end.
//   3. `mutex` of Memory guards its maps; nothing is called while it is held.
//   4. After a fault streams of its devices drop what is queued, as if it had never been, who waits
//      for their events passes, and once none runs anything, every function for these devices
//      returns the fault. Others that copy from their memory find what was there.
//   5. What is queued on a stream that records goes to its graph, and isn't run. A call that can't
//      be recorded ends that: so does each later one, until cudaStreamEndCapture(), which says so.
//      A stream that waits for an event of one that records joins it, to the end of the recording,
//      by which the first must have waited for all that was queued on the others. One thread queues
//      on all of them.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"

struct CUgraph_st;

struct CUevent_st {
  explicit CUevent_st(int where) : device(where) {}
  const int device;
  /// Whether it was ever part of a graph; then one thread uses it, and it was recorded last in this
  /// graph, if any, by this stream, behind so many of its operations.
  std::atomic<bool> was_in_graph{false};
  std::weak_ptr<CUgraph_st> graph;
  CUstream_st* recorder = nullptr;
  std::size_t behind = 0;
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> reached{0};
  std::atomic<std::uint32_t> stirred{0};
  void stir() {
    ++stirred;
    stirred.notify_all();
  }
};

/// What was recorded, in the order of the calls.
struct CUgraph_st {
  std::vector<std::function<void()>> operations;
  /// While it is recorded: how much each stream got, and how much of that the first has waited for.
  struct Branch {
    std::size_t queued = 0;
    std::size_t joined = 0;
  };
  std::map<CUstream_st*, Branch> branches;
  CUstream_st* first = nullptr;
};
/// The same, to be launched.
struct CUgraphExec_st {
  std::vector<std::function<void()>> operations;
};

struct CUstream_st {
  CUstream_st(int where, std::uint64_t seed);
  /// Once all that is queued has run.
  ~CUstream_st();
  void push(std::function<void()> operation);
  void synchronize();
  /// False if that takes so long that it hangs.
  bool try_synchronize();
  bool is_idle();
  /// After a fault: nothing that is queued will run.
  void give_up();
  /// Waits for its end, unless it is this thread that would have to.
  void join_dead();
  /// After a fault, by a thread of the host: nothing is left of it but its address.
  void bury();

  /// By the thread that queues on it.
  void begin_recording();
  /// Null if something was done that can't be recorded, or nothing is. All its streams run again.
  std::unique_ptr<CUgraph_st> end_recording();
  bool is_recording();
  void record(cudaEvent_t event);
  /// False if it can't wait for that event.
  bool wait_in_recording(cudaEvent_t event);
  /// A call was made that can't be recorded.
  void spoil_recording();

  const int device;

 private:
  void run();

  quadriga::Random random;  // The thread's.
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;  // Guarded by mutex; its front runs.
  std::shared_ptr<CUgraph_st> recording;    // Guarded by mutex.
  bool spoiled = false;                     // Guarded by mutex: the recording.
  bool ending = false;                      // Guarded by mutex.
  bool dead = false;                        // Guarded by mutex.
  bool ended = false;                       // Guarded by mutex.
  std::thread thread;
};

namespace quadriga::fake_cuda {

/// By bits.
using DeviceSet = std::uint32_t;
constexpr DeviceSet all_devices = ~DeviceSet{0};
inline bool has(DeviceSet set, int device) { return (set >> device & 1) != 0; }

/// What is wrong with the machine; tests set it.
struct Faults {
  std::atomic<int> devices;           ///< As many as QUADRIGA_TEST_DEVICES says, or two.
  std::atomic<DeviceSet> stopped{0};  ///< Before `faulted`: what runs ends, nothing else begins.
  std::atomic<DeviceSet> faulted{0};  ///< By kernels.
  std::atomic<cudaError_t> absence{cudaSuccess};  ///< Why no device is to be found.
  std::atomic<int> driver_version{13000};         ///< 0: there is none.
  std::atomic<int> without_kernels{-1};           ///< A device that none is compiled for.
  std::atomic<bool> without_peers{false};         ///< No device reaches another.
  std::atomic<bool> are_mixed{false};             ///< The second device is older and smaller.
  std::atomic<std::size_t> taken_bytes{0};        ///< By another process, of each device.
  std::atomic<std::uint64_t> refused_host_allocations{0};  ///< That many to come.
  std::atomic<std::uint64_t> granted_waits{0};  ///< Of streams for events, before those refused.
  std::atomic<std::uint64_t> refused_waits{0};  ///< That many after them.
  std::atomic<std::int64_t> allocations{0};     ///< Of devices and pinned, since it was set.
  std::atomic<std::int64_t> refused_allocation{-1};  ///< Counted from 0.
  std::atomic<bool> refuses_later{false};            ///< Allocations after that one as well.
  std::atomic<std::int64_t> operations_left{-1};     ///< Of all streams, before one faults.
  std::atomic<bool> are_contained{false};            ///< Faults are those of their devices alone.
  std::atomic<bool> without_graphs{false};           ///< No graph has room on a device.
  std::atomic<bool> copies_synchronize{false};  ///< As beside a thread that waits for the device.
  std::atomic<int> stuck_copies{0};             ///< Those for which that would never have ended.
};
Faults& faults();
int devices_by_default();
/// A kernel's fault, by the thread of a stream.
void fault(CUstream_st& stream);
/// Streams that wait for events look whether they still have to.
void stir_events();
/// As if in a new process: what was lost stays so.
void start_anew();
/// Since the process began.
std::uint64_t recorded_events();
std::uint64_t queried_events();
std::uint64_t launched_graphs();
/// That were made and not destroyed.
int living_graphs();
/// The calling thread's.
int current_device();
inline bool has_stopped(int device) { return has(faults().stopped, device); }
inline bool has_faulted(int device) { return has(faults().faulted, device); }
/// What functions for a device return that don't fail by themselves.
inline cudaError_t state(int device) {
  return has_faulted(device) ? cudaErrorIllegalAddress : cudaSuccess;
}
inline cudaError_t state() { return state(current_device()); }

/// Memory of devices, in a file that other processes can map; any thread.
void* allocate_shared(std::size_t bytes);
/// False if it isn't such memory.
bool free_shared(void* memory);
/// A function of the driver's for handles and mappings, by its name; or null.
void* find_sharing_call(std::string_view name);
/// Handles that are open in this process, each as often as it was opened.
int opened_handles();

/// What was allocated, where.
class Memory {
 public:
  static constexpr int pinned = -1;
  static constexpr int pageable = -2;

  void add(const void* memory, std::size_t bytes, int place, bool is_pooled = false);
  bool remove(const void* memory);
  /// A device, or pinned or pageable memory of the host.
  int place_of(const void* memory);
  /// The allocation that an address lies in; without bytes: none.
  struct Found {
    const std::byte* base = nullptr;
    std::size_t bytes = 0;
    std::uint64_t id = 0;  ///< No later one gets it.
    bool is_pooled = false;
  };
  Found find(const void* memory);
  /// In a place altogether.
  std::size_t bytes_at(int place);
  /// What is left on devices.
  void free_all(DeviceSet places);
  static Memory& instance();

 private:
  struct Range {
    std::size_t bytes = 0;
    int place = pageable;
    std::uint64_t id = 0;
    bool is_pooled = false;
  };
  std::mutex mutex;
  std::map<const std::byte*, Range> ranges;
  std::uint64_t ids = 0;
};

}  // namespace quadriga::fake_cuda
