// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/random_program.cpp: makes programs from seeds, runs and checks them.
#include "model/graph/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "model/graph/own_workspace.h"
#include "model/graph/words.h"

namespace quadriga {
namespace {

constexpr std::byte gap{0xa5};
/// Programs take milliseconds; by the virtual clock this much passes quickly if nothing comes to
/// an end.
constexpr double deadline_seconds = 10;

/// What a task is told beside its operands; the rest is for one that submits tasks on them.
struct Salt {
  std::uint64_t value = 0;
  Engine* engine = nullptr;
  const Data* data = nullptr;
  int children = 0;
};

std::uint64_t salt_of_child(std::uint64_t salt, int child) {
  return mix(salt + static_cast<std::uint64_t>(child) + 1);
}

/// What children do with operands of their parent: what it has overwritten, they read.
std::vector<Access> modes_of_children(std::vector<Access> modes) {
  std::ranges::replace(modes, Access::write, Access::update);
  return modes;
}

/// What every task does to its operands, wherever they are.
void compute(std::span<const Access> modes, std::span<const View> operands, std::uint64_t salt) {
  std::uint64_t hash = salt;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (modes[i] == Access::read || modes[i] == Access::update)
      each_word_read(operands[i], [&](std::uint32_t word) {
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
      });
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::uint64_t next = mix(hash + i);
    const auto fresh = [&] {
      next = next * 0xd1342543de82ef95u + 1;
      return static_cast<std::uint32_t>(next >> 32);
    };
    if (modes[i] == Access::write || modes[i] == Access::update)
      each_word(operands[i], [&](std::uint32_t& word) { word = fresh(); });
    else if (modes[i] != Access::read)
      each_word(operands[i], [&](std::uint32_t& word) { word += fresh(); });
  }
}

Cost cost_of(const Arguments& arguments) {
  const auto salt = arguments.param<Salt>().value;
  return {"mix", 1, static_cast<double>(1 + salt % 64)};
}

/// Of two thirds of the tasks, but for those whose operands may fill a device.
std::size_t workspace_of(const Arguments& arguments, DeviceKind) {
  constexpr std::uint64_t most_bytes = 2048;
  const std::uint64_t dice = mix(arguments.param<Salt>().value);
  if (arguments.operands.size() == most_operands || dice % 3 == 0) return 0;
  return 1 + dice / 3 % most_bytes;
}

Kernel (*cuda_adapter)(Kernel) = nullptr;

/// With a CUDA variant if there is an adapter; every other one as if it might wait.
Codelet& complete(Codelet& codelet) {
  if (cuda_adapter) codelet.cuda = cuda_adapter(codelet.cpu);
  codelet.waits_to_queue = codelet.access.size() % 2 == 0;
  return codelet;
}

const Codelet& zero() {
  static const Codelet codelet = [] {
    Codelet made;
    made.name = "zero";
    made.access = {Access::write};
    made.cpu = [](const Arguments& arguments) {
      each_word(arguments.operands[0], [](std::uint32_t& word) { word = 0; });
    };
    return complete(made);
  }();
  return codelet;
}

const Codelet& plus() {
  static const Codelet codelet = [] {
    Codelet made;
    made.name = "plus";
    made.access = {Access::update, Access::read};
    made.cost = [](const Arguments&) { return Cost{"mix", 1, 1}; };
    made.cpu = [](const Arguments& arguments) {
      std::vector<std::uint32_t> words;
      each_word_read(arguments.operands[1], [&](std::uint32_t word) { words.push_back(word); });
      std::size_t next = 0;
      each_word(arguments.operands[0], [&](std::uint32_t& word) { word += words[next++]; });
    };
    return complete(made);
  }();
  return codelet;
}

/// One codelet for each signature; made as they are asked for, never destroyed before the end.
const Codelet& codelet_for(const std::vector<Access>& modes, bool apart, bool submits, bool costs);

void submit_children(const Codelet& codelet, const Salt& salt) {
  const std::vector<Access> modes = modes_of_children(codelet.access);
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < modes.size(); ++i) operands.push_back({salt.data[i], modes[i]});
  const Codelet& child = codelet_for(modes, codelet.combine != nullptr, false, bool(codelet.cost));
  for (int i = 0; i < salt.children; ++i) {
    const Salt own{salt_of_child(salt.value, i)};
    salt.engine->submit(child, operands, std::as_bytes(std::span(&own, 1)));
  }
}

const Codelet& codelet_for(const std::vector<Access>& modes, bool apart, bool submits, bool costs) {
  static std::map<std::tuple<std::vector<Access>, bool, bool, bool>, Codelet> made;
  static std::mutex mutex;  // Bodies ask, too.
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = made.try_emplace({modes, apart, submits, costs});
  Codelet& codelet = place->second;
  if (!is_new) return codelet;
  codelet.name = submits ? "parent" : "mix";
  codelet.submits = submits;
  codelet.access = modes;
  if (costs) codelet.cost = cost_of;
  codelet.workspace = workspace_of;
  codelet.init = apart ? &zero() : nullptr;
  codelet.combine = apart ? &plus() : nullptr;
  codelet.cpu = [&codelet](const Arguments& arguments) {
    const auto& salt = arguments.param<Salt>();
    const std::size_t stated = workspace_of(arguments, DeviceKind::cpu);
    const OwnWorkspace workspace(arguments, stated, salt.value);
    compute(codelet.access, arguments.operands, salt.value);
    workspace.check();
    if (codelet.submits) submit_children(codelet, salt);
  };
  return complete(codelet);
}

/// Copies a tile to the place that its parameter names.
const Codelet& reader() {
  static const Codelet codelet = [] {
    Codelet made;
    made.name = "read";
    made.access = {Access::read};
    made.cost = [](const Arguments&) { return Cost{"mix", 1, 1}; };
    made.cpu = [](const Arguments& arguments) {
      auto* out = arguments.param<std::byte*>();
      each_word_read(arguments.operands[0], [&](std::uint32_t word) {
        std::memcpy(out, &word, 4);
        out += 4;
      });
    };
    return complete(made);
  }();
  return codelet;
}

/// Whether an error is what an injected fault may end in.
bool fault_of(const Error& error) {
  constexpr Errc expected[] = {Errc::io,        Errc::task_failed, Errc::device_lost,
                               Errc::cancelled, Errc::unavailable, Errc::too_large};
  return std::ranges::find(expected, error.code()) != std::end(expected);
}

View packed(const Shape& shape, std::vector<std::byte>& bytes) {
  return {bytes.data(), shape.rows, shape.cols, shape.rows, shape.dtype};
}

}  // namespace

RandomProgram::RandomProgram(std::uint64_t seed, const ProgramOptions& options, int devices)
    : random_(seed), options_(options), devices_(devices) {
  add_tiles();
  for (int i = 0; i < options_.tasks; ++i) add_task();
}

void RandomProgram::add_tiles() {
  constexpr DType types[] = {DType::float32, DType::float64, DType::complex64, DType::complex128};
  const auto count = (options_.few_buffers ? 8 : 3) + static_cast<int>(random_.below(10));
  const bool equal = random_.chance(0.3);
  for (int i = 0; i < count; ++i) {
    Tile tile;
    tile.shape.dtype = types[random_.below(4)];
    const auto most = static_cast<std::int64_t>(options_.most_bytes / size_of(tile.shape.dtype));
    tile.shape.cols = equal ? 8 : 1 + static_cast<std::int64_t>(random_.below(8));
    const std::int64_t most_rows = most / tile.shape.cols;
    tile.shape.rows =
        equal ? most_rows
              : 1 + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most_rows)));
    tile.shape.ld = tile.shape.rows +
                    (random_.chance(0.5) ? 0 : 1 + static_cast<std::int64_t>(random_.below(5)));
    tile.homed = random_.chance(0.7);
    if (random_.chance(options_.few_buffers ? 0.9 : 0.3))
      tile.device = static_cast<DeviceId>(random_.below(static_cast<std::uint64_t>(devices_)));
    tile.keep = random_.chance(0.2);
    tile.written = tile.homed;
    tiles_.push_back(tile);
  }
}

Access RandomProgram::mode_for(const Tile& tile) {
  if (tile.final) return Access::read;
  if (!tile.written) return Access::write;
  constexpr Access modes[] = {Access::read,   Access::read,   Access::read,
                              Access::write,  Access::update, Access::commute,
                              Access::reduce, Access::reduce, Access::reduce};
  return modes[random_.below(9)];
}

void RandomProgram::add_task() {
  const double dice = random_.uniform();
  const auto some = [&] { return static_cast<int>(random_.below(tiles_.size())); };
  if (const int tile = some(); dice < 0.12 && !tiles_[tile].removed && tiles_[tile].written) {
    Step step{};
    step.tile = tile;
    if (dice < 0.05)
      step.kind = Step::Kind::wait_data;
    else if (dice < 0.06)
      step.kind = Step::Kind::wait_all;
    else if (dice < 0.09)
      step.kind = Step::Kind::final;
    else if (dice < 0.11)
      step.kind = Step::Kind::evict;
    else
      step.kind = Step::Kind::remove;
    const auto left = std::ranges::count_if(
        tiles_, [](const Tile& each) { return !each.removed && !each.final; });
    if ((step.kind == Step::Kind::final || step.kind == Step::Kind::remove) && left < 3)
      step.kind = Step::Kind::wait_data;
    tiles_[tile].final |= step.kind == Step::Kind::final;
    tiles_[tile].removed |= step.kind == Step::Kind::remove;
    steps_.push_back(step);
  }
  Step step{};
  step.kind = Step::Kind::submit;
  const auto operands = 1 + random_.below(most_operands);
  // Neighbours in time like the same tiles, so that chains and groups come about.
  for (std::uint64_t i = 0; i < operands; ++i) {
    const int tile = some();
    if (tiles_[tile].removed || std::ranges::count(step.tiles, tile)) continue;
    step.tiles.push_back(tile);
    step.modes.push_back(mode_for(tiles_[tile]));
    tiles_[tile].written = true;
  }
  if (step.tiles.empty()) return;
  step.salt = random_();
  step.apart = random_.chance(0.8) && !options_.few_buffers;
  if (options_.nested && random_.chance(0.15))
    step.children = 1 + static_cast<int>(random_.below(4));
  step.options.priority = random_.chance(0.5) ? 0 : static_cast<int>(random_.below(20)) - 5;
  const auto device = static_cast<DeviceId>(random_.below(static_cast<std::uint64_t>(devices_)));
  if (random_.chance(0.4))
    step.options.owner = device;
  else if (random_.chance(0.1))
    step.options.device = device;
  // The last is the host, if that has cores.
  if (options_.few_buffers && random_.chance(0.3))
    step.options.device = static_cast<DeviceId>(devices_) - 1;
  steps_.push_back(std::move(step));
}

void RandomProgram::start(Engine& engine) {
  places_.assign(tiles_.size(), {});
  operands_.clear();
  operands_.reserve(most_operands * steps_.size());  // bodies keep addresses
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const Tile& tile = tiles_[i];
    const Shape& shape = tile.shape;
    Place& place = places_[i];
    place.expected.resize(shape.bytes());
    if (!tile.homed) {
      place.data = engine.temporary(shape.rows, shape.cols, shape.dtype, {tile.keep});
      continue;
    }
    place.data = add_homed(engine, i);
  }
}

/// Registers a tile at its home, which gets its first content.
Data RandomProgram::add_homed(Engine& engine, std::size_t tile) {
  const auto& [shape, homed, device, keep, written, final, removed] = tiles_[tile];
  Place& place = places_[tile];
  const auto bytes = static_cast<std::size_t>(shape.ld * shape.cols) * size_of(shape.dtype);
  place.home = device == no_device ? nullptr : homes_.take(device, bytes);
  const bool on_host = place.home == nullptr;
  if (on_host) {
    place.on_host.resize(bytes);
    place.home = place.on_host.data();
  }
  std::fill_n(place.home, bytes, gap);
  const View home{place.home, shape.rows, shape.cols, shape.ld, shape.dtype};
  std::uint64_t next = tile;
  each_word(home,
            [&](std::uint32_t& word) { word = static_cast<std::uint32_t>(next = mix(next)); });
  std::byte* out = place.expected.data();
  each_word_read(home, [&](std::uint32_t word) {
    std::memcpy(out, &word, 4);
    out += 4;
  });
  if (on_host) return engine.data(home.data, home.rows, home.cols, home.ld, home.dtype, {keep});
  return engine.data(device, home.data, home.rows, home.cols, home.ld, home.dtype, {keep});
}

void RandomProgram::submit(Engine& engine, const Step& step) {
  std::vector<Operand> operands;
  std::vector<View> views;
  for (std::size_t i = 0; i < step.tiles.size(); ++i) {
    Place& place = places_[static_cast<std::size_t>(step.tiles[i])];
    operands.push_back({place.data, step.modes[i]});
    views.push_back(packed(tiles_[static_cast<std::size_t>(step.tiles[i])].shape, place.expected));
  }
  for (const Operand& operand : operands) operands_.push_back(operand.data);
  const Salt salt{step.salt, &engine, &operands_[operands_.size() - operands.size()],
                  step.children};
  engine.submit(codelet_for(step.modes, step.apart, step.children > 0, options_.costs), operands,
                std::as_bytes(std::span(&salt, 1)), step.options);
  compute(step.modes, views, step.salt);
  const std::vector<Access> modes = modes_of_children(step.modes);
  for (int i = 0; i < step.children; ++i) compute(modes, views, salt_of_child(step.salt, i));
}

std::string RandomProgram::compare_home(int tile) const {
  const Place& place = places_[static_cast<std::size_t>(tile)];
  const Shape& shape = tiles_[static_cast<std::size_t>(tile)].shape;
  const std::size_t height = static_cast<std::size_t>(shape.rows) * size_of(shape.dtype);
  const std::size_t pitch = static_cast<std::size_t>(shape.ld) * size_of(shape.dtype);
  for (std::size_t col = 0; col < static_cast<std::size_t>(shape.cols); ++col) {
    const std::byte* const column = place.home + col * pitch;
    if (std::memcmp(column, place.expected.data() + col * height, height) != 0)
      return fmt::format("tile {}: column {} is wrong at home", tile, col);
    if (std::any_of(column + height, column + pitch, [](std::byte b) { return b != gap; }))
      return fmt::format("tile {}: the gap after column {} was written", tile, col);
  }
  return {};
}

std::string RandomProgram::carry_out(Engine& engine, const Step& step) {
  const auto index = static_cast<std::size_t>(step.tile);
  switch (step.kind) {
    case Step::Kind::submit:
      submit(engine, step);
      return {};
    case Step::Kind::final:
      engine.final(places_[index].data);
      return {};
    case Step::Kind::evict:
      engine.evict(places_[index].data);
      return {};
    case Step::Kind::wait_data:
      engine.wait(places_[index].data, deadline_seconds);
      break;
    case Step::Kind::remove:
      engine.remove(places_[index].data);
      break;
    case Step::Kind::wait_all:
      engine.wait(deadline_seconds);
      break;
  }
  if (step.kind == Step::Kind::wait_all && tiles_[index].keep) return {};
  return tiles_[index].homed ? compare_home(step.tile) : std::string();
}

/// Homes after wait(), kept and homeless tiles by way of tasks that read them.
std::string RandomProgram::compare_all(Engine& engine) {
  engine.wait(deadline_seconds);
  for (std::size_t i = 0; i < tiles_.size(); ++i)
    if (tiles_[i].homed && !tiles_[i].keep)
      if (std::string wrong = compare_home(static_cast<int>(i)); !wrong.empty()) return wrong;
  std::vector<std::vector<std::byte>> contents(tiles_.size());
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    if (tiles_[i].removed || !tiles_[i].written) continue;
    contents[i].resize(tiles_[i].shape.bytes());
    engine.submit(reader(), {{places_[i].data, Access::read}}, contents[i].data());
  }
  engine.wait(deadline_seconds);
  for (std::size_t i = 0; i < tiles_.size(); ++i)
    if (!contents[i].empty() && contents[i] != places_[i].expected)
      return fmt::format("tile {} is wrong where it was read in the end", i);
  return {};
}

std::string RandomProgram::run(Engine& engine) {
  std::size_t step = 0;
  try {
    start(engine);
    for (; step < steps_.size(); ++step)
      if (std::string wrong = carry_out(engine, steps_[step]); !wrong.empty())
        return fmt::format("step {}: {}", step, wrong);
    std::string wrong = compare_all(engine);
    renamed_ = engine.counters().renaming.renamed;
    for (std::size_t i = 0; i < tiles_.size(); ++i)
      if (!tiles_[i].removed) engine.remove(places_[i].data);
    return wrong;
  } catch (const std::exception& error) {
    std::string wrong = fmt::format("step {}: {}", step, error.what());
    // Should the engine's end hang as well, this is all that is seen.
    if (std::getenv("QUADRIGA_TEST_SEED")) fmt::print(stderr, "{}\n", wrong);
    return wrong;
  }
}

/// Its content is right, or an error says that it is lost.
std::string RandomProgram::compare_if_there(Engine& engine, int tile, int& lost) {
  const auto index = static_cast<std::size_t>(tile);
  try {
    if (tiles_[index].homed) {
      engine.wait(places_[index].data, deadline_seconds);
      return compare_home(tile);
    }
    std::vector<std::byte> content(tiles_[index].shape.bytes());
    const Future read =
        engine.submit(reader(), {{places_[index].data, Access::read}}, content.data());
    engine.wait(read, deadline_seconds);
    return content == places_[index].expected ? std::string()
                                              : fmt::format("tile {} is wrong in the end", tile);
  } catch (const Error& error) {
    ++lost;
    return fault_of(error) ? std::string() : fmt::format("tile {}: {}", tile, error.what());
  }
}

std::string RandomProgram::carry_out_despite_faults(Engine& engine, const Step& step, int& lost) {
  try {
    switch (step.kind) {
      case Step::Kind::wait_all:
        engine.wait(deadline_seconds);
        return {};
      case Step::Kind::wait_data:
        return compare_if_there(engine, step.tile, lost);
      case Step::Kind::remove: {
        std::string wrong = compare_if_there(engine, step.tile, lost);
        engine.remove(places_[static_cast<std::size_t>(step.tile)].data, true);
        return wrong;
      }
      default:
        return carry_out(engine, step);
    }
  } catch (const Error& error) {
    return fault_of(error) ? std::string() : error.what();
  }
}

std::string RandomProgram::run_despite_faults(const WrappedOptions& options, int& lost) {
  std::unique_ptr<Engine> made;
  try {
    made = EngineAccess::make_unique(homes_.around(options));
  } catch (const Error& error) {
    return error.code() == Errc::unavailable ? std::string() : error.what();
  }
  Engine& engine = *made;
  start(engine);
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (std::string wrong = carry_out_despite_faults(engine, steps_[i], lost); !wrong.empty())
      return fmt::format("step {}: {}", i, wrong);
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    if (tiles_[i].removed || !tiles_[i].written) continue;
    if (std::string wrong = compare_if_there(engine, static_cast<int>(i), lost); !wrong.empty())
      return wrong;
  }
  return {};
}

void give_cuda_variants(Kernel (*adapter)(Kernel)) { cuda_adapter = adapter; }

}  // namespace quadriga
