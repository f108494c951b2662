// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/random_program_gangs.cpp: random programs of tasks that start together.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "device/factory.h"
#include "engine/engine_access.h"
#include "model/graph/own_workspace.h"
#include "model/graph/random_gangs.h"
#include "schedule/gang_claims.h"

namespace quadriga {
namespace {

constexpr std::size_t tile_bytes = 2048;
constexpr std::size_t elements = tile_bytes / sizeof(std::uint64_t);
constexpr double patience = 300;
constexpr int steps = 40;

using Content = std::vector<std::uint64_t>;

/// Where the bodies of a gang wait for each other.
struct Meeting {
  std::shared_ptr<Gang> gang;
  bool waits = false;
  std::atomic<std::uint32_t> came{0};
  std::atomic<bool> was_left_alone{false};

  void attend() {
    came.fetch_add(1);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point until = Clock::now() + std::chrono::seconds(240);
    while (waits && came.load() < gang->size && !gang->broken.load()) {
      if (Clock::now() >= until) return was_left_alone.store(true);
      std::this_thread::sleep_for(std::chrono::microseconds(240));
    }
  }
};

struct Params {
  std::uint64_t salt = 0;
  Meeting* meeting = nullptr;
};

std::uint64_t next_value(std::uint64_t old, std::uint64_t salt, std::uint64_t sum) {
  return mix(old ^ mix(salt + sum));
}

/// Of those whose operands leave room for it on a device.
std::size_t workspace_of(const Arguments& call, DeviceKind) {
  return call.operands.size() < 3 ? tile_bytes / 2 : 0;
}

void run_body(const Arguments& call) {
  const Params params = call.param<Params>();
  const OwnWorkspace workspace(call, workspace_of(call, DeviceKind::cpu), params.salt);
  if (params.meeting) params.meeting->attend();
  workspace.check();
  auto* const out = call.operands[0].as<std::uint64_t>();
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint64_t sum = 0;
    for (std::size_t j = 1; j < call.operands.size(); ++j)
      sum += call.operands[j].as<std::uint64_t>()[i];
    out[i] = next_value(out[i], params.salt, sum);
  }
}

class GangProgram {
 public:
  GangProgram(const WrappedOptions& made, Random& random, const GangOptions& options)
      : random_(random), options_(options), engine_(EngineAccess::make(made)) {
    const std::vector<Device>& devices = engine_.machine().devices;
    for (DeviceId device = 0; device < devices.size(); ++device)
      if (devices[device].kind != DeviceKind::cpu || devices[device].cores > 0)
        places_.push_back(device);
    homes_.resize(4 * places_.size());
    for (Content& home : homes_) {
      home.assign(elements, data_.size());
      data_.push_back(engine_.data(home.data(), elements, 1, elements, DType::float64));
    }
    expected_ = homes_;
    for (std::size_t operands = 1; operands <= 3; ++operands) add_codelet(operands);
  }

  std::string run() {
    for (int step = 0; step < steps; ++step) {
      if (random_.chance(0.5))
        submit_gang();
      else
        submit_one();
      if (random_.chance(0.05)) wait();
    }
    wait();
    for (const Meeting& meeting : meetings_)
      if (meeting.was_left_alone) return "a body waited for others that didn't come";
    const bool may_fail = options_.fault_probability > 0 || options_.loses_device;
    return may_fail || homes_ == expected_ ? "" : "a tile has a wrong content";
  }

 private:
  void add_codelet(std::size_t operands) {
    Codelet& made = codelets_.emplace_back();
    made.name = "mix";
    made.access.assign(operands, Access::read);
    made.access[0] = Access::update;
    made.cpu = run_body;
    if (options_.adapter) made.cuda = options_.adapter(run_body);
    made.cost = [](const Arguments&) { return Cost{"mix", 1, 1}; };
    made.workspace = workspace_of;
  }

  std::vector<std::size_t> shuffled_tiles() {
    std::vector<std::size_t> tiles(data_.size());
    std::iota(tiles.begin(), tiles.end(), std::size_t{0});
    for (std::size_t i = tiles.size(); i-- > 1;) std::swap(tiles[i], tiles[random_.below(i + 1)]);
    return tiles;
  }

  /// Writes the first of these tiles, reads the others.
  std::vector<Operand> operands(std::span<const std::size_t> tiles, std::uint64_t salt) {
    std::vector<Operand> made;
    for (const std::size_t tile : tiles)
      made.push_back({data_[tile], made.empty() ? Access::update : Access::read});
    Content& out = expected_[tiles[0]];
    for (std::size_t i = 0; i < elements; ++i) {
      std::uint64_t sum = 0;
      for (const std::size_t tile : tiles.subspan(1)) sum += expected_[tile][i];
      out[i] = next_value(out[i], salt, sum);
    }
    return made;
  }

  void submit_one() {
    const Params params{random_(), nullptr};
    const std::vector<std::size_t> tiles = shuffled_tiles();
    const std::size_t count = 1 + random_.below(3);
    engine_.submit(codelets_[count - 1], operands(std::span(tiles).first(count), params.salt),
                   std::as_bytes(std::span(&params, 1)));
  }

  /// Its tasks write a tile each, and read others that none of them writes.
  void submit_gang() {
    const std::vector<std::size_t> tiles = shuffled_tiles();
    std::vector<DeviceId> places = places_;
    std::rotate(places.begin(), places.begin() + static_cast<int>(random_.below(places.size())),
                places.end());
    places.resize(1 + random_.below(places.size()));
    Meeting& meeting = meetings_.emplace_back();
    meeting.gang = std::make_shared<Gang>(static_cast<std::uint32_t>(places.size()));
    meeting.waits = !options_.virtual_clock;
    std::vector<Params> params(places.size());
    std::vector<GangTask> tasks;
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::vector<std::size_t> own{tiles[i]};
      for (std::size_t reads = random_.below(3), j = 0; j < reads; ++j) {
        const std::size_t tile = tiles[places.size() + random_.below(tiles.size() - places.size())];
        if (std::ranges::find(own, tile) == own.end()) own.push_back(tile);
      }
      params[i] = {random_(), &meeting};
      tasks.push_back({&codelets_[own.size() - 1], operands(own, params[i].salt), places[i],
                       std::as_bytes(std::span(&params[i], 1))});
    }
    EngineAccess::submit_together(engine_, tasks, meeting.gang);
  }

  void wait() {
    try {
      engine_.wait(patience);
    } catch (const Error& error) {
      const bool may_fail = options_.fault_probability > 0 || options_.loses_device;
      if (!may_fail || error.code() == Errc::deadline || error.code() == Errc::internal) throw;
    }
  }

  Random& random_;
  const GangOptions& options_;
  std::deque<Codelet> codelets_;
  std::vector<DeviceId> places_;  ///< That run tasks.
  std::vector<Content> homes_;
  std::vector<Content> expected_;
  std::vector<Data> data_;
  std::deque<Meeting> meetings_;
  Engine engine_;  ///< Ends before what its tasks use.
};

/// Gangs that need room on some devices for a while, by turns that chance gives them.
class ClaimsModel {
 public:
  explicit ClaimsModel(std::uint64_t seed) : random_(mix(seed)), free_(2 + random_.below(6), 2) {}

  /// One comes, ends, or tries to start.
  void step() {
    if (random_.chance(0.3) && waiting_.size() + running_.size() < 20) {
      waiting_[++last_] = 1 + random_.below((GangClaims::Devices{1} << free_.size()) - 1);
    } else if (random_.chance(0.5) && !running_.empty()) {
      end(std::next(running_.begin(), static_cast<int>(random_.below(running_.size()))));
    } else if (!waiting_.empty()) {
      start(std::next(waiting_.begin(), static_cast<int>(random_.below(waiting_.size()))));
    }
  }
  /// None comes any more: empty if all of them start, as those that run end.
  std::string drain() {
    while (!waiting_.empty()) {
      bool has_started = false;
      for (auto next = waiting_.begin(); next != waiting_.end();) has_started |= start(next++);
      if (!has_started && running_.empty()) return "no gang can start";
      if (!has_started) end(running_.begin());
    }
    if (wrong_) return "a gang passes one that claimed before it";
    return claims_.claimed() == 0 && claims_.oldest() == 0 ? "" : "claims are left";
  }

 private:
  using Set = std::map<GangId, GangClaims::Devices>;

  /// All of its room at once, or a claim; who claimed first comes first.
  bool start(Set::iterator at) {
    const auto [gang, devices] = *at;
    bool has_room = claims_.has_turn(gang, devices);
    for (const auto& [other, when] : claimed_at_) {
      const bool is_earlier = !claimed_at_.contains(gang) || when < claimed_at_.at(gang);
      if (other != gang && is_earlier && (waiting_.at(other) & devices) != 0) wrong_ |= has_room;
    }
    for (DeviceId device = 0; device < free_.size(); ++device)
      has_room &= (devices >> device & 1) == 0 || free_[device] > 0;
    if (!has_room) {
      claims_.claim(gang, devices);
      claimed_at_.try_emplace(gang, ++time_);
      return false;
    }
    for (DeviceId device = 0; device < free_.size(); ++device)
      free_[device] -= static_cast<int>(devices >> device & 1);
    claims_.drop(gang);
    claimed_at_.erase(gang);
    running_[gang] = devices;
    waiting_.erase(at);
    return true;
  }
  void end(Set::iterator at) {
    for (DeviceId device = 0; device < free_.size(); ++device)
      free_[device] += static_cast<int>(at->second >> device & 1);
    running_.erase(at);
  }

  Random random_;
  std::vector<int> free_;  ///< By device, how many more it holds.
  GangClaims claims_;
  Set waiting_;
  Set running_;
  std::map<GangId, int> claimed_at_;
  bool wrong_ = false;
  GangId last_ = 0;
  int time_ = 0;
};

FaultPlan faults_of(const GangOptions& options, Random& random) {
  FaultPlan plan;
  plan.launch_probability = options.fault_probability;
  plan.seed = random();
  if (options.loses_device) plan.losses.push_back({0, 1 + random.below(60)});
  return plan;
}

}  // namespace

std::string run_claims(std::uint64_t seed) {
  ClaimsModel model(seed);
  for (int step = 0; step < 300; ++step) model.step();
  const std::string wrong = model.drain();
  return wrong.empty() ? wrong : fmt::format("seed {}: {}", seed, wrong);
}

std::string run_gangs(std::uint64_t seed, const GangOptions& options) {
  Random random(mix(seed));
  WrappedOptions made;
  made.virtual_clock = options.virtual_clock;
  made.seed = seed;
  made.window = 16 + random.below(48);
  const int devices = 2 + static_cast<int>(random.below(3));
  made.machine = small_machine(random, devices, static_cast<int>(random.below(3)), tile_bytes);
  for (Device& device : made.machine->devices)
    if (device.kind == DeviceKind::emulated) device.kind = options.kind;
  made.policy = random.chance(0.5) ? "affinity" : "steal";
  const FaultPlan plan = faults_of(options, random);
  if (options.fault_probability > 0 || options.loses_device)
    made.wrap_backend = [plan](std::unique_ptr<Backend> backend) {
      return make_faulty_backend(std::move(backend), plan);
    };
  try {
    const std::string wrong = GangProgram(made, random, options).run();
    return wrong.empty() ? wrong : fmt::format("seed {}: {}", seed, wrong);
  } catch (const Error& error) {
    return fmt::format("seed {}: {}", seed, error.what());
  }
}

}  // namespace quadriga
