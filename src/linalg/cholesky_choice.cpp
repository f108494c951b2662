// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky_choice.cpp: searches tiles and places of a factorization, and remembers them.
#include "linalg/cholesky_choice.h"

#include "base/config.h"
#include "device/reference_machine.h"
#include "engine/kept.h"
#include "graph/pulled.h"
#include "linalg/estimate.h"
#include "linalg/home_links.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/real.h"
#include "linalg/special_cases.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <utility>

namespace quadriga::linalg {
namespace {

/// Numbers of tiles that grow by halves or thirds until three were no better than the best, then
/// those around that, and larger tiles whose trials take little; of the best of these the one that
/// takes least time by the virtual clock, where there is time for it.
class TileSearch {
 public:
  TileSearch(const Engine& engine, const DeviceGroup& group, const Problem& problem, bool tries)
      : engine_(engine), group_(group), problem_(problem), order_(problem.m), may_try_(tries) {}

  /// Sets the tile and what is known of it; returns how long its trials took.
  double choose(CholeskyChoice& choice, TrialBudget& budget) {
    search();
    const std::vector<TileCandidate> worth = worth_a_trial(engine_.machine(), found_, budget);
    for (const TileCandidate& each : worth) budget.take(each.steps);
    const TileCandidate tried =
        worth.empty() ? TileCandidate{} : best_by_trial(engine_, problem_, group_.places, worth);
    choice.tile = best_;
    choice.foretold = least_;
    if (tried.tile == 0) return 0;
    // One alone has nothing to be compared with but the promise of the best, which took too long to
    // try: schedules can't tell apart what differs by less than this, and mostly promise too much.
    if (worth.size() > 1 || tried.seconds <= trial_tolerance * least_) {
      choice.tile = tried.tile;
      choice.tried = tried.seconds;
    }
    const double most = std::ranges::max_element(worth, {}, &TileCandidate::tasks)->tasks;
    return trial_seconds(engine_.machine(), most);
  }

 private:
  static constexpr std::int64_t most_between = 8;

  void search() {
    constexpr auto& counts = part_counts;
    int worse = 0;
    for (auto count = counts.begin(); count != counts.end() && worse < 3; ++count)
      worse = consider(*count) || best_ == 0 ? 0 : worse + 1;
    const auto middle = std::ranges::find(counts, best_count_);
    const std::int64_t from = middle == counts.begin() ? 1 : *std::prev(middle);
    const std::int64_t to = middle >= counts.end() - 1 ? counts.back() : *std::next(middle);
    consider_between(from, to);
    if (!may_try_ || !uses(SpecialCase::larger_tiles)) return;
    const std::int64_t most = most_to_try();
    consider_between(most / 2, most + 1);
  }

  void consider_between(std::int64_t from, std::int64_t to) {
    const std::int64_t step = std::max<std::int64_t>(1, (to - from) / most_between);
    for (std::int64_t count = from + step; count < to; count += step) consider(count);
  }

  /// Of tiles that are larger than the best, but whose trial takes little enough.
  std::int64_t most_to_try() const {
    std::int64_t count = best_count_;
    const auto price = [&] { return trial_seconds(engine_.machine(), cholesky_tasks(count)); };
    while (count > 1 && price() > planning_seconds(least_)) --count;
    return count;
  }

  /// About so many tiles, whose lengths are multiples of the machine's granule. True if they are
  /// the best so far.
  bool consider(std::int64_t count) {
    constexpr std::int64_t least_in_memory = 4;
    const std::int64_t length = (order_ + count - 1) / count;
    const std::int64_t tile = std::min(order_, group_.whole(length));
    const CholeskyTimes times = cholesky_times(engine_, group_, order_, tile, problem_.dtype);
    // Trials look at what is a little worse, too.
    const double visible = may_try_ ? trial_tolerance * least_ : least_;
    if (times.shape.memory < least_in_memory || cholesky_bound(times) >= visible) return false;
    const double seconds = cholesky_seconds(times, visible);
    if (seconds >= visible) return false;
    if (may_try_ && cholesky_blocks(times.shape).size() == 1)
      found_.push_back(
          {tile, seconds, cholesky_tasks(times.shape.tiles), trial_steps(times.shape)});
    if (seconds >= least_) return false;
    least_ = seconds;
    best_ = tile;
    best_count_ = count;
    return true;
  }

  const Engine& engine_;
  const DeviceGroup& group_;
  const Problem& problem_;
  std::int64_t order_;
  bool may_try_;
  std::vector<TileCandidate> found_;
  double least_ = std::numeric_limits<double>::infinity();
  std::int64_t best_ = 0;
  std::int64_t best_count_ = 1;
};

/// What is factorized, whatever is solved with it; a factor that stays on devices is one to solve
/// with.
Problem factorization_of(const Problem& problem) {
  Problem factorization = problem;
  if (problem.from_source) factorization.kind = Problem::Kind::cho_solve;
  if (factorization.kind == Problem::Kind::cho_solve) factorization.in_place = true;
  factorization.n = factorization.kind == Problem::Kind::cho_solve ? 0 : problem.m;
  factorization.k = problem.m;
  return factorization;
}

/// The host, if its cores compute beside the devices and the table says how fast; else null.
const Device* sharing_host(const Engine& engine, DType dtype) {
  const std::vector<Device>& devices = engine.machine().devices;
  const auto found = std::ranges::find_if(devices, [](const Device& device) {
    return device.kind == DeviceKind::cpu && device.cores > 0;
  });
  const bool shares = found != devices.end() &&
                      knows_rates(engine, static_cast<DeviceId>(found - devices.begin()), dtype);
  return shares ? &*found : nullptr;
}

/// All that the search knows.
std::vector<double> key_of(const Engine& engine, const DeviceGroup& group, const Problem& problem,
                           std::int64_t tile, bool tries) {
  const Machine& machine = engine.machine();
  const Device& device = machine.devices[group.devices.front()];
  std::vector<double> key{static_cast<double>(problem.m),
                          static_cast<double>(tile),
                          static_cast<double>(problem.dtype),
                          static_cast<double>(problem.kind),
                          problem.from_source ? 1.0 : 0.0,
                          problem.in_place ? 1.0 : 0.0,
                          tries ? 1.0 : 0.0,
                          static_cast<double>(group.size()),
                          static_cast<double>(group.places.size()),
                          static_cast<double>(group.memory_bytes),
                          static_cast<double>(group.granule),
                          static_cast<double>(device.compute_streams),
                          group.seconds_a_byte,
                          machine.launch_seconds,
                          static_cast<double>(special_cases_left_out()),
                          machine.planning.engine_seconds,
                          machine.planning.task_seconds,
                          machine.planning.listed_seconds,
                          static_cast<double>(engine.options().window),
                          static_cast<double>(engine.options().host_memory),
                          static_cast<double>(Config::global().integer("window")),
                          static_cast<double>(Config::global().integer("planning_percent"))};
  const auto append = [&](const std::map<double, double>& table) {
    for (const auto& [at, value] : table) key.insert(key.end(), {at, value});
  };
  const std::vector<double> home_links = HomeLinks(machine, group).key();
  key.insert(key.end(), home_links.begin(), home_links.end());
  const CholeskyTimes speeds = cholesky_times(engine, group, problem.m, problem.m, problem.dtype);
  key.insert(key.end(), speeds.slower.begin(), speeds.slower.end());
  for (const std::ptrdiff_t place : speeds.device_of_place)
    key.push_back(static_cast<double>(place));
  const Device* const host = sharing_host(engine, problem.dtype);
  key.push_back(host ? host->cores : 0);
  for (const kernels::Names* const names :
       {&kernels::potrf_names, &kernels::trsm_names, &kernels::syrk_names, &kernels::gemm_names}) {
    const auto& table = machine.kernels.find((*names)[kernels::type_index(problem.dtype)])->second;
    append(table.at(device.rates));
    if (host) append(table.at(host->rates));
  }
  return key;
}

/// The choices of the last calls: programs repeat factorizations, and a search takes milliseconds.
/// The process has one; an engine under the virtual clock, whose runs repeat, has its own.
class ChoiceMemo {
 public:
  /// `search()` makes a choice, `go_on(choice)` improves a known one.
  template <class Search, class GoOn>
  CholeskyChoice find(const std::vector<double>& key, Search&& search, GoOn&& go_on) {
    CholeskyChoice choice;
    const bool is_known = look_up(key, choice);
    // Others don't wait for it, even if two search for the same.
    if (is_known ? go_on(choice) : (choice = search(), true)) keep(key, choice);
    return choice;
  }

 private:
  using Entry = std::pair<std::vector<double>, CholeskyChoice>;

  bool look_up(const std::vector<double>& key, CholeskyChoice& choice) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(choices_, key, &Entry::first);
    if (found == choices_.end()) return false;
    choices_.splice(choices_.begin(), choices_, found);
    choice = found->second;
    return true;
  }

  void keep(const std::vector<double>& key, const CholeskyChoice& choice) {
    constexpr std::size_t most = 16;
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(choices_, key, &Entry::first);
    if (found != choices_.end()) {
      found->second = choice;
      return;
    }
    choices_.emplace_front(key, choice);
    if (choices_.size() > most) choices_.pop_back();
  }

  std::mutex mutex_;
  std::list<Entry> choices_;  ///< Last used first; guarded by mutex_.
};

/// Trials are paid for by what they take on this machine. Under the virtual clock, whose runs
/// repeat, they are taken to cost what was foretold.
class TrialBill {
 public:
  explicit TrialBill(const Engine& engine) : engine_(engine) {}
  /// Of trials that ran one after the other, as many as `in_turn`.
  void pay(CholeskyChoice& choice, double in_turn) const {
    using Seconds = std::chrono::duration<double>;
    const bool is_virtual = engine_.options().virtual_clock;
    if (!is_virtual) choice.price = Seconds(Clock::now() - begin_).count() / in_turn;
    const double stated = trial_seconds(engine_.machine(), choice.tasks);
    choice.saved -= in_turn * (is_virtual ? stated : choice.price);
  }

 private:
  using Clock = std::chrono::steady_clock;

  const Engine& engine_;
  const Clock::time_point begin_ = Clock::now();
};

/// Tries as many places as the saved seconds and the budget allow, each trial on a core of its own.
/// False if none.
bool try_places(const Engine& engine, const Problem& problem, CholeskyChoice& choice,
                const TrialBudget& budget) {
  const double price = std::max(choice.price, trial_seconds(engine.machine(), choice.tasks));
  const auto in_turn = static_cast<std::size_t>(std::max(0.0, choice.saved / price));
  std::vector<PlaceOwners> round;
  if (choice.tried == 0) round.push_back(choice.places);
  const std::size_t known = round.size();
  const auto affordable = static_cast<std::size_t>(budget.left() / choice.steps);
  const std::size_t most =
      std::min({in_turn * most_trials, affordable, known + choice.untried.size()});
  if (most <= known) return false;
  const auto taken = static_cast<std::ptrdiff_t>(most - known);
  round.insert(round.end(), choice.untried.begin(), choice.untried.begin() + taken);
  choice.untried.erase(choice.untried.begin(), choice.untried.begin() + taken);
  const TrialBill bill(engine);
  const std::vector<double> found = seconds_by_trial(most, [&](std::size_t index) {
    return seconds_by_tile(engine, problem, choice.tile, round[index]);
  });
  bill.pay(choice, std::ceil(static_cast<double>(most) / static_cast<double>(most_trials)));
  if (known > 0) choice.tried = found.front();
  for (std::size_t i = known; i < most; ++i) {
    if (found[i] >= choice.tried) continue;
    choice.tried = found[i];
    choice.places = round[i];
  }
  return true;
}

/// Whether there is time for the list schedule that tells what the call takes.
bool may_try(const Machine& machine, const CholeskyTimes& times) {
  return planning_cost(machine).listed_seconds * cholesky_tasks(times.shape.tiles) <=
         planning_seconds(cholesky_bound(times));
}

CholeskyChoice search(const Engine& engine, const DeviceGroup& group, const Problem& problem,
                      std::int64_t tile, bool tries) {
  CholeskyChoice choice;
  choice.places = group.places;
  choice.tile = tile;
  double spent = 0;
  TrialBudget budget;
  const bool tries_tiles = tries && uses(SpecialCase::tile_trials);
  if (tile == 0) spent = TileSearch(engine, group, problem, tries_tiles).choose(choice, budget);
  if (choice.tile == 0 || !tries) return choice;
  const CholeskyTimes times = cholesky_times(engine, group, problem.m, choice.tile, problem.dtype);
  if (!may_try(engine.machine(), times)) return choice;
  if (tile > 0) choice.foretold = cholesky_seconds(times);
  choice.tasks = cholesky_tasks(times.shape.tiles);
  choice.steps = trial_steps(times.shape);
  choice.saved = planning_seconds(choice.foretold) - spent;
  const bool several = group.size() >= 2 || sharing_host(engine, problem.dtype);
  const bool may_pull = several && problem.kind == Problem::Kind::cholesky && !problem.from_source;
  choice.untried = places_beside(group.places, may_pull && uses(SpecialCase::pulls));
  if (!uses(SpecialCase::places))
    std::erase_if(choice.untried, [](const auto& each) { return each.front() != pulled_owner; });
  const bool fits = cholesky_blocks(times.shape).size() == 1;
  // A task of what doesn't fit the devices takes far longer to try.
  if (!fits)
    std::erase_if(choice.untried, [](const auto& each) { return each.front() != pulled_owner; });
  try_places(engine, problem, choice, budget);
  if (!fits) choice.untried.clear();
  return choice;
}

}  // namespace

double trial_steps(const CholeskyShape& shape) {
  constexpr double ample_columns = 16;
  constexpr double most_looks = 8;
  const double own = real(shape.tiles) * real(shape.tiles + 1) / 2 / real(shape.devices);
  const double columns = std::max(1.0, (real(shape.memory) - own) / real(shape.tiles));
  const double looks = shape.memory > 0 ? std::clamp(ample_columns / columns, 1.0, most_looks) : 1;
  return cholesky_tasks(shape.tiles) * real(shape.devices) * looks;
}

CholeskyChoice choose_cholesky(const Engine& engine, const DeviceGroup& group,
                               const Problem& problem, std::int64_t tile, Trials trials,
                               Asked asked) {
  static ChoiceMemo of_process;
  CholeskyChoice unknown;
  unknown.tile = tile;
  unknown.places = group.places;
  if (problem.m == 0 || group.size() == 0 ||
      !knows_rates(engine, group.devices.front(), problem.dtype))
    return unknown;
  const Problem factorization = factorization_of(problem);
  const bool tries = trials == Trials::allowed && can_try(engine);
  if (tile > 0 && !tries) return unknown;
  ChoiceMemo& memo =
      engine.options().virtual_clock ? kept_with(engine).of<ChoiceMemo>() : of_process;
  return memo.find(
      key_of(engine, group, factorization, tile, tries),
      [&] { return search(engine, group, factorization, tile, tries); },
      [&](CholeskyChoice& known) {
        if (asked == Asked::by_query || known.untried.empty()) return false;
        known.saved += planning_seconds(known.foretold);
        try_places(engine, factorization, known, {});
        return true;
      });
}

}  // namespace quadriga::linalg
