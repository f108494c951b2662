// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/random_sharing.cpp: the steps of programs on shared memory, and their mirror.
#include "model/graph/random_sharing.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "engine/engine_access.h"
#include "engine/on_host.h"

namespace quadriga {
namespace {

constexpr std::int64_t order = 12;
using Block = std::array<double, order * order>;

/// Where a view of a block lies in it.
struct Part {
  std::int64_t offset;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t ld;
  View of(Block& block) const { return {block.data() + offset, rows, cols, ld, DType::float64}; }
  template <class Call>
  void each(Call&& call) const {
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < rows; ++i) call(static_cast<std::size_t>(offset + i + j * ld));
  }
};

/// The whole, rows, columns, corners, all as one vector, its parts, and every third element.
constexpr std::array<Part, 9> parts{{{0, order, order, order},
                                     {2, 3, order, order},
                                     {3 * order, order, 4, order},
                                     {5 * order, order, 1, order},
                                     {4, order - 4, 6, order},
                                     {0, order* order, 1, order* order},
                                     {0, 1, order* order / 3, 3},
                                     {10, 30, 1, 30},
                                     {order * order - 5, 5, 1, 5}}};

template <class Call>
void each(const View& view, Call&& call) {
  for (std::int64_t j = 0; j < view.cols; ++j)
    for (std::int64_t i = 0; i < view.rows; ++i) call(view.as<double>()[i + j * view.ld]);
}

double sum(const View& view) {
  double total = 0;
  each(view, [&](double value) { total += value; });
  return total;
}

/// Bodies keep values small whole numbers, so that sums are exact.
double small(double value) { return static_cast<double>(static_cast<int>(value) % 64); }

void shift(const Arguments& a) {
  double before = 1;
  each(a.operands[0], [&](double& value) {
    const double next = value;
    value = small(before + 1);
    before = next;
  });
}
void combine(const Arguments& a) {
  const double total = sum(a.operands[0]);
  each(a.operands[1], [&](double& value) { value = small(2 * value + total); });
}
void overwrite(const Arguments& a) {
  const double total = sum(a.operands[0]);
  each(a.operands[1], [&](double& value) { value = small(total); });
}
void gather(const Arguments& a) {
  const double total = small(sum(a.operands[0]));
  each(a.operands[1], [&](double& value) { value += total; });
}
void more(const Arguments& a) {
  each(a.operands[0], [](double& value) { ++value; });
}

Codelet made(const char* name, std::vector<Access> access, void (*body)(const Arguments&),
             Kernel (*on_gpu)(Kernel), bool at_host) {
  Codelet codelet;
  codelet.name = name;
  codelet.access = std::move(access);
  codelet.cpu = body;
  codelet.host_only = at_host;
  if (on_gpu != nullptr && !at_host) codelet.cuda = on_gpu(body);
  codelet.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
  return codelet;
}

std::vector<Codelet> codelets_of(Kernel (*on_gpu)(Kernel)) {
  std::vector<Codelet> all;
  for (const bool at_host : {false, true}) {
    all.push_back(made("shift", {Access::update}, shift, on_gpu, at_host));
    all.push_back(made("combine", {Access::read, Access::update}, combine, on_gpu, at_host));
    all.push_back(made("overwrite", {Access::read, Access::write}, overwrite, on_gpu, at_host));
    all.push_back(made("gather", {Access::read, Access::commute}, gather, on_gpu, at_host));
    all.push_back(made("more", {Access::update}, more, on_gpu, at_host));
  }
  return all;
}

struct Spot {
  std::size_t block;
  std::size_t part;
  auto operator<=>(const Spot&) const = default;
};

/// A program and its mirror, step by step.
class Program {
 public:
  Program(std::uint64_t seed, Engine& engine, Kernel (*on_gpu)(Kernel))
      : random_(mix(seed)),
        codelets_(codelets_of(on_gpu)),
        resident_(random_.below(2) == 0),
        engine_(&engine) {
    for (Block& block : blocks_)
      for (double& value : block) value = static_cast<double>(random_.below(9));
    mirror_ = blocks_;
  }

  std::string run() {
    const std::uint64_t steps = 10 + random_.below(50);
    for (step_ = 0; step_ < steps && wrong_.empty(); ++step_) one_step();
    engine_->wait(patience);
    for (std::size_t block = 0; block < blocks_.size(); ++block) check({block, 0}, "at the end");
    while (!held_.empty()) forget();
    return wrong_;
  }

 private:
  void one_step() {
    switch (random_.below(14)) {
      case 0:
      case 1:
        on_host(1);
        return;
      case 2:
        return write_after_wait();
      case 3:
        return forget();
      case 4:
        return wait();
      default:
        return submit();
    }
  }

  Spot some() { return {random_.below(blocks_.size()), random_.below(parts.size())}; }

  /// Registered before, or anew.
  Data data(const Spot& spot) {
    std::vector<Data>& known = held_[spot];
    if (!known.empty() && random_.below(2) == 0) return known.back();
    const View view = parts[spot.part].of(blocks_[spot.block]);
    known.push_back(engine_->data(view.data, view.rows, view.cols, view.ld, view.dtype,
                                  {.resident = resident_}));
    return known.back();
  }

  void submit() {
    const Codelet& codelet = codelets_[random_.below(codelets_.size())];
    std::vector<Operand> operands;
    std::vector<View> views;
    const Spot first = some();
    for (std::size_t i = 0; i < codelet.access.size(); ++i) {
      const Spot spot = i == 0 ? first : Spot{1 - first.block, random_.below(parts.size())};
      operands.push_back({data(spot), codelet.access[i]});
      views.push_back(parts[spot.part].of(mirror_[spot.block]));
    }
    SubmitOptions options;
    if (!codelet.host_only && !engine_->host_only() && random_.below(2) == 0)
      options.device = static_cast<DeviceId>(random_.below(2));
    tasks_.push_back(engine_->submit(codelet, operands, {}, options));
    Arguments arguments;
    arguments.operands = views;
    codelet.cpu(arguments);
  }

  /// Within the access others of the same thread, of anything that may be updated, and at last a
  /// task, which may follow the access, so that the thread must wait for nothing: true then.
  bool on_host(int deeper) {
    const Spot spot = some();
    const Access mode =
        deeper == 1 ? std::array{Access::read, Access::write, Access::update}[random_.below(3)]
                    : Access::update;
    const HostAccess access = engine_->on_host(data(spot), mode, patience);
    if (mode != Access::write) check(spot, "on the host");
    if (mode != Access::read) {
      const double value = static_cast<double>(random_.below(9));
      for (auto* const blocks : {&blocks_, &mirror_})
        each(parts[spot.part].of((*blocks)[spot.block]),
             [&](double& at) { at = mode == Access::write ? value : small(at + value); });
    }
    if (mode != Access::update) return false;
    for (std::uint64_t rest = random_.below(3); rest > 0 && deeper > 0; --rest)
      if (on_host(deeper - 1)) return true;
    if (random_.below(3) != 0) return false;
    submit();
    return true;
  }

  void write_after_wait() {
    engine_->wait(patience);
    tasks_.clear();
    if (!resident_) write();
  }
  void write() {
    const Spot spot = some();
    const double value = static_cast<double>(random_.below(9));
    for (auto* const blocks : {&blocks_, &mirror_})
      each(parts[spot.part].of((*blocks)[spot.block]), [&](double& at) { at = value; });
  }

  void forget() {
    if (held_.empty()) return;
    const auto one =
        std::next(held_.begin(), static_cast<std::ptrdiff_t>(random_.below(held_.size())));
    for (const Data& each : one->second) engine_->remove(each);
    held_.erase(one);
  }

  void wait() {
    const std::uint64_t kind = random_.below(3);
    if (kind == 0) return engine_->wait(patience);
    if (kind == 1) return wait_for_tasks();
    const Spot spot = some();
    engine_->wait(data(spot), patience);
    check(spot, "after a wait for the data");
  }

  /// Whoever knows that all of them have ended has what they wrote.
  void wait_for_tasks() {
    for (const Future& task : tasks_) engine_->wait(task, patience);
    if (resident_ || tasks_.empty()) return;
    tasks_.clear();
    for (std::size_t block = 0; block < blocks_.size(); ++block)
      check({block, 0}, "after waits for tasks");
    write();
  }

  void check(const Spot& spot, const char* when) {
    if (!wrong_.empty()) return;
    parts[spot.part].each([&](std::size_t i) {
      const double found = blocks_[spot.block][i];
      const double expected = mirror_[spot.block][i];
      if (found != expected && wrong_.empty())
        wrong_ = fmt::format("step {}: element {} of block {} is {}, not {}, {}", step_, i,
                             spot.block, found, expected, when);
    });
  }

  Random random_;
  std::array<Block, 2> blocks_{};
  std::array<Block, 2> mirror_{};
  std::vector<Codelet> codelets_;
  bool resident_;
  std::uint64_t step_ = 0;
  std::string wrong_;
  std::map<Spot, std::vector<Data>> held_;
  std::vector<Future> tasks_;  ///< Since all were waited for.
  Engine* engine_;
};

/// What one of several threads does; counts what it has added to each element.
void add_by_turns(Engine& engine, const Codelet& codelet, Block& block, Random random,
                  std::array<int, order * order>& added) {
  for (int step = 0; step < 30; ++step) {
    const Part& part = parts[random.below(parts.size())];
    const View view = part.of(block);
    const Data data =
        engine.data(view.data, view.rows, view.cols, view.ld, view.dtype, {.resident = true});
    const std::uint64_t kind = random.below(6);
    std::optional<Future> task;
    if (kind == 0) {
      const HostAccess access = engine.on_host(data, Access::read, patience);
    } else if (kind == 1) {
      const HostAccess access = engine.on_host(data, Access::update, patience);
      each(view, [](double& value) { ++value; });
    } else if (kind == 2) {
      if (random.below(2) == 0) engine.wait(data, patience);
      is_home(engine, data);
    } else {
      task = engine.submit(codelet, {{data, Access::update}});
    }
    if (kind != 0 && kind != 2) part.each([&](std::size_t i) { ++added[i]; });
    if (task && random.below(2) == 0) engine.wait(*task, patience);
    if (random.below(4) == 0) engine.remove(data);
  }
}

std::unique_ptr<Engine> engine_for(std::uint64_t seed, Where where) {
  WrappedOptions options = options_for(where);
  options.seed = mix(seed + 1);
  if (seed % 2 == 0) options.renaming_bytes = 64 << mix(seed) % 8;  // a tile or so, to all
  return EngineAccess::make_unique(std::move(options));
}

/// Under the virtual clock GPUs run bodies as they are.
auto on_virtual_gpus(Where where) -> Kernel (*)(Kernel) {
  if (where != Where::virtual_gpus) return nullptr;
  return [](Kernel body) { return body; };
}

}  // namespace

std::string run_sharing(std::uint64_t seed, Engine& engine, Kernel (*on_gpu)(Kernel)) {
  try {
    return Program(seed, engine, on_gpu).run();
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string run_sharing_threads(std::uint64_t seed, Engine& engine, Kernel (*on_gpu)(Kernel)) {
  Random random(mix(seed));
  const std::vector<Codelet> codelets = codelets_of(on_gpu);
  Block block{};
  std::array<std::array<int, order * order>, 3> added{};
  std::array<std::string, 3> wrong;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < added.size(); ++i)
    threads.emplace_back([&, i, own = random.split()] {
      try {
        add_by_turns(engine, codelets[4], block, own, added[i]);
      } catch (const std::exception& error) {
        wrong[i] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong)
    if (!each.empty()) return each;
  engine.wait(patience);
  for (std::size_t i = 0; i < block.size(); ++i) {
    const int expected = added[0][i] + added[1][i] + added[2][i];

    if (block[i] != expected) return fmt::format("element {} is {}, not {}", i, block[i], expected);
  }
  return "";
}

std::string run_sharing(std::uint64_t seed, Where where) {
  return run_sharing(seed, *engine_for(seed, where), on_virtual_gpus(where));
}

std::string run_sharing_threads(std::uint64_t seed, Where where) {
  return run_sharing_threads(seed, *engine_for(seed, where), on_virtual_gpus(where));
}

}  // namespace quadriga
