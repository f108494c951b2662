// SPDX-License-Identifier: BSD-3-Clause
// src/engine/recorder.h: counters always, a trace on request; the same calls feed both.
//
// A trace may keep its last seconds only, without the tasks' graph. What ended before them is
// dropped once as much time again has passed, so that each record is moved once at most; what is
// told leaves it out at once.
//
// Each lane (a stream of a device, or a host worker) has one writer. Reading during work gives a
// recent state, reading after wait() the exact one.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/report.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/backend.h"
#include "engine/busy_union.h"
#include "engine/crew.h"
#include "graph/spin_lock.h"
#include "graph/task.h"
#include "memory/memory.h"
#include "schedule/schedule_listener.h"

namespace quadriga {

/// A stretch of the program's time.
struct Section {
  std::string name;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  std::string details = {};  ///< An object in JSON, of what a front end tells of it.
};

/// A message or collective of a task. Ranks are the world's.
struct MessageEvent {
  std::string name;
  std::uint64_t task = 0;
  int rank = 0;   ///< Who records it.
  int ranks = 1;  ///< Of the world.
  int from = -1;  ///< -1: a collective.
  int to = -1;
  int tag = 0;
  std::uint64_t context = 0;
  std::uint64_t bytes = 0;
  bool failed = false;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
};

/// A task as it was submitted: what another engine needs to run one like it.
struct Submission {
  struct Operand {
    std::uint32_t data = 0;  ///< Index into Recorder::data().
    Access access = Access::read;
  };
  std::uint64_t task = 0;
  Nanoseconds when = 0;
  std::vector<Operand> operands;
  std::vector<std::uint64_t> after;  ///< Tasks that it was told to follow.
  std::vector<std::uint32_t> final;  ///< Data declared final between it and the next task.
  std::string kernel;                ///< Of its cost; empty: it has none.
  double order = 0;
  double volume = 0;
  std::uint64_t workspace = 0;  ///< Bytes; the most of all devices with memory of their own.
  int priority = 0;
  DeviceId owner = no_device;
  bool host_only = false;
};

/// What tasks of a trace access.
struct RecordedData {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  DType dtype = DType::bytes;
  bool homed = true;  ///< It has memory of the user's.

  bool operator==(const RecordedData&) const = default;
};

struct Record {
  enum class Kind : std::uint8_t { kernel, copy, mark, fine };
  Kind kind = Kind::mark;
  std::uint8_t detail = 0;  ///< Reason or Mark; of fine tasks, fine_helps and fine_counts.
  SpaceId from = 0;
  SpaceId to = 0;
  TileId tile = no_tile;
  std::uint64_t task = 0;
  std::uint64_t bytes = 0;            ///< Of fine tasks, how many.
  const std::string* name = nullptr;  ///< Of a kernel or a divided task; kept by its lane.
  Nanoseconds expected = 0;           ///< Of a kernel, by the machine's table; 0: unknown.
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
};

/// Of fine tasks: they are another core's; their time isn't part of a kernel's.
constexpr std::uint8_t fine_helps = 1;
constexpr std::uint8_t fine_counts = 2;

/// By the setting; 0: all.
Nanoseconds kept_of_trace();

void add_link(std::vector<LinkCounters>& links, const LinkCounters& more);

class Recorder {
 public:
  /// `kept`: how much time of the trace's end it keeps; 0: all.
  Recorder(const Machine& machine, bool tracing, Nanoseconds kept = 0);

  /// A lane of a device; not thread-safe, before work starts.
  int add_lane(DeviceId device, StreamKind kind, std::string name);

  /// `expected`: how long it should take, 0 if unknown.
  void kernel(int lane, const Task& task, Nanoseconds begin, Nanoseconds end,
              Nanoseconds expected = 0);
  /// Many kernels at once, when nobody traces: only counts.
  void kernels(int lane, std::uint64_t tasks, Nanoseconds busy, Nanoseconds end);
  /// A core ran fine tasks. `counts`: that time isn't part of a kernel's.
  void fine(int lane, const FineStretch& stretch, bool counts);
  void copy(int lane, Reason reason, TileId tile, SpaceId from, SpaceId to, std::uint64_t bytes,
            Nanoseconds begin, Nanoseconds end);
  void mark(int lane, Mark mark, TileId tile, std::uint64_t task, Nanoseconds when);
  /// Adds to the device's time with a kernel; by the driver's thread only.
  void computed(DeviceId device, Nanoseconds begin, Nanoseconds end);
  /// A task was submitted, as far as anybody traces; the submission lock is held.
  void submitted(const Task& task, Nanoseconds when);
  /// No later task writes it.
  void final(const Datum& datum);
  /// A call of a front end, or a part of the program that has a name.
  void section(Section section) {
    if (!tracing_) return;
    std::lock_guard lock(told_);
    drop_old(sections_, section.end);
    sections_.push_back(std::move(section));
  }
  /// A message of a task has ended.
  void message(MessageEvent event) {
    if (!tracing_) return;
    std::lock_guard lock(told_);
    drop_old(messages_, event.end);
    messages_.push_back(std::move(event));
  }
  bool tracing() const noexcept { return tracing_; }

  void count(Counters& counters) const;
  /// Puts what the trace adds up to in the place of what was counted, if something was left out.
  void count_kept(Counters& counters) const;
  /// Whether something was left out of the trace.
  bool has_dropped() const { return first_kept() > 0; }
  Nanoseconds kept() const noexcept { return kept_; }
  /// Whether the trace has all tasks, with what they follow.
  bool keeps_graph() const noexcept { return kept_ == 0; }
  void reset();

  /// End of the last kernel counted; 0 if there is none.
  Nanoseconds last_end() const;
  /// Begin of the first event that is kept and end of the last; `never` and 0 if there is none.
  std::pair<Nanoseconds, Nanoseconds> extent() const;
  /// Events in the form of docs/report.md, as the inside of a JSON array; times from `origin` on.
  std::string events_json(Nanoseconds origin) const;
  std::vector<Section> sections() const {
    std::lock_guard lock(told_);
    return sections_;
  }
  std::vector<MessageEvent> messages() const;
  /// In the order of submission.
  std::vector<Submission> submissions() const {
    std::lock_guard lock(told_);
    return submitted_;
  }
  std::vector<RecordedData> data() const {
    std::lock_guard lock(told_);
    return data_;
  }
  /// Calls visit(DeviceId, const Record&) for each kernel of the trace.
  template <class Visit>
  void for_each_kernel(Visit&& visit) const {
    const Nanoseconds first = first_kept();
    for (const auto& lane : lanes_) {
      std::lock_guard lock(lane->lock);
      for (const Record& record : lane->records)
        if (record.kind == Record::Kind::kernel && record.end >= first) visit(lane->device, record);
    }
  }

 private:
  struct alignas(64) Lane {
    DeviceId device = 0;
    StreamKind kind = StreamKind::compute;
    std::string name;
    // Single writer; atomics so that others may read.
    std::atomic<std::uint64_t> tasks{0};
    std::atomic<Nanoseconds> busy{0};
    std::atomic<Nanoseconds> last{0};  ///< End of the last kernel.
    std::array<std::atomic<std::uint64_t>, 6> marks{};
    mutable SpinLock lock;  ///< Guards the members below.
    std::vector<LinkCounters> links;
    std::vector<Record> records;
    /// Of kernels: a codelet may be gone before the trace is written.
    std::set<std::string> names;
  };
  struct DeviceTime {
    BusyUnion copying;
    BusyUnion computing;
    BusyUnion either;

    void tell(DeviceCounters& counters) const {
      counters.copying = copying.total();
      counters.computing = computing.total();
      counters.overlap = copying.total() + computing.total() - either.total();
    }
  };
  void log(Lane& lane, const Record& record);
  /// Of items in the order of their ends.
  template <class Items>
  void drop_old(Items& items, Nanoseconds now) const {
    if (kept_ == 0 || items.empty() || items.front().end >= now - 2 * kept_) return;
    const auto first =
        std::ranges::find_if(items, [&](const auto& each) { return each.end >= now - kept_; });
    items.erase(items.begin(), first);
  }
  /// What ends before isn't part of the trace; at most 0: all is.
  Nanoseconds first_kept() const;
  void add_kept(const Lane& lane, const Record& record, Counters& counters,
                std::vector<DeviceTime>& times) const;
  std::uint32_t number_of(const Datum& datum);
  const std::string& space_name(SpaceId space) const;
  void append_event(std::string& text, const Lane& lane, std::size_t tid, const Record& record,
                    Nanoseconds origin) const;

  const Machine& machine_;
  bool tracing_;
  Nanoseconds kept_;
  std::vector<DeviceId> device_of_space_;  ///< No_device: the host's.
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<DeviceTime> times_;  ///< By device; fed by the driver's thread only.
  mutable SpinLock told_;          ///< Guards the members below.
  std::vector<Submission> submitted_;
  std::vector<RecordedData> data_;
  std::map<const Datum*, std::uint32_t> numbers_;  ///< By their places, which are used again.
  std::vector<Section> sections_;
  std::vector<MessageEvent> messages_;
};

}  // namespace quadriga
