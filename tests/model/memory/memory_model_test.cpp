// SPDX-License-Identifier: BSD-3-Clause
// tests/model/memory/memory_model_test.cpp: random tasks on three devices of three tiles each, with
// the virtual clock, give what they give one after another on plain arrays. Homes are on the host,
// on a device, or nowhere; for some seeds the host has buffers for the latter and one more, for
// others for a few, and a file has room for the rest. For some columns are padded.
#include "memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"
#include "device/factory.h"
#include "device/kinds.h"

namespace quadriga {
namespace {

using Words = std::vector<std::uint64_t>;

constexpr std::int64_t most_rows = 32, most_cols = 8;
constexpr std::size_t most_bytes = most_rows * most_cols * sizeof(std::uint64_t);

struct Shape {
  std::int64_t rows = most_rows;
  std::int64_t cols = most_cols;
};

/// All of each device's memory, and a stream for each way of copies.
struct SpacesOfDevices {
  SpacesOfDevices(Backend& of, const Machine& machine)
      : backend(of), resources(static_cast<std::size_t>(machine.spaces())) {
    for (DeviceId device = 0; device < machine.devices.size(); ++device)
      if (machine.devices[device].space != host_space) open(machine, device);
  }
  SpacesOfDevices(const SpacesOfDevices&) = delete;
  SpacesOfDevices& operator=(const SpacesOfDevices&) = delete;
  ~SpacesOfDevices() {
    for (const SpaceResources& space : resources)
      if (space.base) backend.deallocate(space.device, space.base);
  }
  void open(const Machine& machine, DeviceId device) {
    const Device& described = machine.devices[device];
    SpaceResources& space = resources[described.space];
    space.device = device;
    space.is_file = properties_of(described.kind).only_stores;
    space.node = described.node;
    space.bytes = described.memory_bytes;
    space.base = backend.allocate(device, space.bytes);
    space.in = backend.create_stream(device, StreamKind::copy_in);
    space.out = backend.create_stream(device, StreamKind::copy_out);
    space.peers.resize(resources.size());
    for (SpaceId from = 1; from < resources.size(); ++from)
      if (machine.route(from, described.space))
        space.peers[from] = backend.create_stream(device, StreamKind::peer_in);
  }

  Backend& backend;
  std::vector<SpaceResources> resources;
};

struct Work {
  std::vector<Need> needs;
  SpaceId space = host_space;
  std::uint64_t salt = 0;
};

/// What a task does to its operands, wherever they are.
void compute(const Work& work, std::span<const View> operands) {
  std::uint64_t hash = work.salt;
  const auto each = [](const View& view, auto&& visit) {
    for (std::int64_t col = 0; col < view.cols; ++col)
      for (std::int64_t row = 0; row < view.rows; ++row)
        visit(view.as<std::uint64_t>()[row + col * view.ld]);
  };
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (reads(work.needs[i].access))
      each(operands[i], [&](std::uint64_t word) { hash = mix(hash ^ word); });
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (writes(work.needs[i].access))
      each(operands[i], [&](std::uint64_t& word) { word = mix(hash++); });
}

Machine small_machine(bool peers, std::size_t bytes) {
  Machine machine = Machine::parse(std::string("emulated:3,memory=1MiB,h2d=1GB/s,d2h=1GB/s,peer=") +
                                   (peers ? "2GB/s" : "off"));
  for (Device& device : machine.devices) {
    device.memory_bytes = bytes;
    machine.kernels["mix"][device.rates][1] = 1e-6;
  }
  return machine;
}

/// Columns begin at multiples of what differs by device; padding is an eighth of a tile at most.
void pad_columns(Machine& machine) {
  std::size_t alignment = 16;
  for (Device& device : machine.devices) {
    device.pitch_alignment = alignment *= 2;
    device.memory_bytes = device.memory_bytes / 8 * 9;
  }
}

constexpr std::size_t most_tiles = 24, most_operands = 3;
/// From here on seeds have few buffers on the host, and every second tile has no home, others one
/// on a device.
constexpr int few_buffers_from = 12;

/// Of so many seeds one is with padded columns.
constexpr int seeds_a_padded = 3;

/// From here on the host has buffers for two tasks' operands only, and a file.
constexpr int file_from = 24;
constexpr SpaceId file_space = 4;

/// A fourth space, joined to the host alone.
void add_file(Machine& machine) {
  Device file;
  file.name = "file";
  file.kind = DeviceKind::file;
  file.space = file_space;
  file.memory_bytes = 4 * most_tiles * most_bytes;
  machine.devices.push_back(file);
  machine.links.push_back({.name = "disk", .bytes_per_second = 1e8, .latency_seconds = 1e-5});
  const int disk = static_cast<int>(machine.links.size()) - 1;
  machine.routes.push_back({.from = host_space, .to = file_space, .links = {disk}});
  machine.routes.push_back({.from = file_space, .to = host_space, .links = {disk}});
}

/// Of so many seeds one is with a host of two nodes, which hold more buffers than the host gives.
constexpr int seeds_a_two_nodes = 5;

/// The devices are near the first one, the other, and none.
void add_nodes(Machine& machine) {
  machine.nodes = {{.index = 0, .memory_bytes = 4 * most_bytes},
                   {.index = 1, .memory_bytes = most_tiles * most_bytes}};
  machine.devices[0].node = 0;
  machine.devices[1].node = 1;
  machine.links.push_back({.name = "between", .bytes_per_second = 5e8});
  Route far = *machine.route(1, host_space);
  far.links.push_back(static_cast<int>(machine.links.size()) - 1);
  far.node = 1;
  machine.routes.push_back(far);
}

Machine machine_of(int seed) {
  Machine machine = small_machine(seed % 2 == 0, 3 * most_bytes);
  if (seed % seeds_a_padded == 0) pad_columns(machine);
  if (seed % seeds_a_two_nodes == 0) add_nodes(machine);
  if (seed >= file_from) add_file(machine);
  return machine;
}

/// Its devices have more memory than the arenas: for homes.
Machine large_machine(int seed) {
  Machine machine = small_machine(seed % 2 == 0, std::size_t{1} << 20);
  if (seed % seeds_a_two_nodes == 0) add_nodes(machine);
  if (seed >= file_from) add_file(machine);
  return machine;
}

MemoryOptions host_of(int seed) {
  MemoryOptions options;
  if (seed >= few_buffers_from)
    options.spill_bytes = (seed >= file_from ? 2 * most_operands : most_tiles / 2 + 1) *
                          Spill::rounded(most_bytes / 8 * 9);
  return options;
}

/// The parameter is the seed.
class MemoryModelTest : public ::testing::TestWithParam<int>,
                        public TileForecast,
                        public MemoryListener {
 protected:
  struct Tile {
    TileId id = no_tile;
    Shape shape;
    std::uint64_t* home = nullptr;  ///< Columns lie `ld` apart; null: homeless.
    SpaceId space = host_space;     ///< Where home is.
    std::int64_t ld = 0;
    Words expected;
    bool written = false;
    int last_writer = -1;  ///< Index of the task, while it is queued.
  };
  struct Running {
    const Work* work = nullptr;
    int index = 0;
    Kernel kernel;
    std::vector<View> views;
  };

  std::uint64_t next_use(TileId tile, SpaceId space) const override {
    for (std::size_t i = position_; i < plan_.size(); ++i)
      if (plan_[i].space == space && std::ranges::count(plan_[i].needs, tile, &Need::tile))
        return i;
    return no_next_use;
  }
  /// Half of the runs tell which uses are later, the others leave it open.
  bool take_later_uses(std::vector<LaterUse>& tiles) override {
    if (GetParam() % 2 == 0) return false;
    told_.resize(memory_.replicas().tiles() * 5, no_next_use);
    for (const auto& [tile, known] : by_id_)
      for (SpaceId space = 0; space < 5; ++space) {
        const std::uint64_t next = next_use(tile, space);
        if (next > std::exchange(told_[tile * 5 + space], next)) tiles.push_back({tile, space});
      }
    return true;
  }
  void copy_ended(StreamId, Reason, TileId tile, SpaceId from, SpaceId to, std::size_t,
                  const Completion& completion) override {
    EXPECT_FALSE(completion.error);
    ++copies_;
    if (to == file_space) ++to_file_;
    if (from == file_space) ++from_file_;
    if (to == host_space) nodes_.insert(memory_.replicas().at(tile, host_space).node);
  }
  void evicted(TileId, SpaceId) override { ++evictions_; }
  void probed(SpaceId, const Completion&) override {}

  bool has_home(std::size_t tile) {
    return GetParam() < few_buffers_from ? random_.chance(0.6) : tile % 2 == 0;
  }

  void add_tiles(bool equal) {
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      Tile& tile = tiles_[i];
      if (!equal) tile.shape.rows = 1 + static_cast<std::int64_t>(random_.below(most_rows));
      if (!equal) tile.shape.cols = 1 + static_cast<std::int64_t>(random_.below(most_cols));
      tile.expected.resize(static_cast<std::size_t>(tile.shape.rows * tile.shape.cols));
      TileInfo info;
      info.width_bytes = static_cast<std::size_t>(tile.shape.rows) * sizeof(std::uint64_t);
      info.columns = static_cast<std::size_t>(tile.shape.cols);
      if (has_home(i)) {
        tile.ld = tile.shape.rows + static_cast<std::int64_t>(random_.below(3));
        give_home(tile);
        tile.written = true;
        info.home = reinterpret_cast<std::byte*>(tile.home);
        info.home_space = tile.space;
        info.pitch = static_cast<std::size_t>(tile.ld) * sizeof(std::uint64_t);
      }
      tile.id = memory_.replicas().add(info);
      by_id_[tile.id] = &tile;
    }
  }

  /// Memory that the arenas don't have, with random content.
  void give_home(Tile& tile) {
    const bool on_device = random_.chance(GetParam() < few_buffers_from ? 0.4 : 1);
    tile.space = static_cast<SpaceId>(on_device ? 1 + random_.below(3) : 0);
    const auto words = static_cast<std::size_t>(tile.ld * tile.shape.cols);
    if (tile.space == host_space) {
      homes_.emplace_back(words);
      tile.home = homes_.back().data();
    } else {
      const auto device = static_cast<DeviceId>(tile.space - 1);
      std::byte* const memory = backend_->allocate(device, words * sizeof(std::uint64_t));
      ASSERT_EQ(backend_->holder(memory), device);
      tile.home = reinterpret_cast<std::uint64_t*>(memory);
    }
    std::generate_n(tile.home, words, [this] { return random_(); });
    for (std::int64_t col = 0; col < tile.shape.cols; ++col)
      std::copy_n(tile.home + col * tile.ld, tile.shape.rows,
                  &tile.expected[static_cast<std::size_t>(col * tile.shape.rows)]);
  }

  void make_plan(std::size_t tasks) {
    std::vector<bool> written;
    for (const Tile& tile : tiles_) written.push_back(tile.written);
    for (std::size_t task = 0; task < tasks; ++task) {
      Work work{
          .needs = {}, .space = static_cast<SpaceId>(1 + random_.below(3)), .salt = random_()};
      const std::size_t count = 1 + random_.below(most_operands);
      for (std::size_t operand = 0; operand < count; ++operand) {
        const std::size_t chosen = random_.below(tiles_.size());
        if (std::ranges::count(work.needs, tiles_[chosen].id, &Need::tile)) continue;
        constexpr std::array modes{Access::read, Access::read, Access::update, Access::write};
        const Access access = written[chosen] ? modes[random_.below(4)] : Access::write;
        if (writes(access)) written[chosen] = true;
        work.needs.push_back({tiles_[chosen].id, access});
      }
      plan_.push_back(std::move(work));
    }
  }

  /// Waits for one operation to end; false if none is queued.
  bool progress() {
    Completion completion;
    carry_out(instructions_, *backend_);
    if (backend_->next_completion({&completion, 1}, never) == 0) return false;
    if (memory_.completed(completion)) return true;
    const auto ended = running_.find({completion.event.stream, completion.event.ticket});
    if (ended == running_.end()) return true;
    EXPECT_FALSE(completion.error);
    for (const Need& need : ended->second.work->needs) {
      Tile& tile = *by_id_[need.tile];
      if (tile.last_writer == ended->second.index) {
        memory_.transfers().confirm(need.tile);
        tile.last_writer = -1;
      }
      memory_.residency().unpin(need.tile, ended->second.work->space);
    }
    running_.erase(ended);
    return true;
  }

  bool write_home(Tile& tile) {
    while (tile.last_writer >= 0) progress();
    while (!memory_.evictor().send_home(tile.id, Reason::final))
      if (!progress()) return false;
    return true;
  }

  /// Stages operands, waiting for what must end first. A device that is drained and still has no
  /// room in one piece is emptied.
  void stage(const Work& work) {
    bool emptied = false;
    for (;;) {
      const Outcome outcome = memory_.staging().stage(work.needs, work.space);
      if (is_done(outcome)) return;
      ASSERT_TRUE(std::holds_alternative<Awaits>(outcome)) << outcome.index();
      if (progress()) continue;
      ASSERT_FALSE(emptied) << "no room on an empty device";
      while (memory_.evictor().drain(work.space) != Awaits::nothing) ASSERT_TRUE(progress());
      emptied = true;
    }
  }

  void issue(int index) {
    const Work& work = plan_[static_cast<std::size_t>(index)];
    ASSERT_NO_FATAL_FAILURE(stage(work));
    const StreamId stream = streams_[work.space];
    Running running{.work = &work, .index = index, .kernel = {}, .views = {}};
    std::vector<View> expected;
    for (const Need& need : work.needs) {
      Tile& tile = *by_id_[need.tile];
      const std::size_t pitch =
          memory_.replicas().pitch(need.tile, work.space) / sizeof(std::uint64_t);
      running.views.push_back({memory_.replicas().address(need.tile, work.space), tile.shape.rows,
                               tile.shape.cols, static_cast<std::int64_t>(pitch), DType::float64});
      expected.push_back({tile.expected.data(), tile.shape.rows, tile.shape.cols, tile.shape.rows,
                          DType::float64});
      if (!careless_) memory_.transfers().wait_for(stream, need.tile, work.space, need.access);
    }
    compute(work, expected);
    running.kernel = [&work](const Arguments& arguments) { compute(work, arguments.operands); };
    // Launch keeps pointers, so that the entry must have its place before.
    const auto entry = running_.emplace(std::pair(stream, ++launches_[stream]), running).first;
    Launch launch;
    launch.kernel = &entry->second.kernel;
    launch.arguments.operands = entry->second.views;
    launch.cost = {"mix", 1, 1};
    launch.name = "mix";
    const Event event = instructions_.launch(stream, launch);
    auto node = running_.extract(entry);
    node.key() = {event.stream, event.ticket};
    running_.insert(std::move(node));
    for (const Need& need : work.needs) {
      memory_.used(need.tile, work.space, need.access, event);
      if (!writes(need.access)) continue;
      by_id_[need.tile]->written = true;
      by_id_[need.tile]->last_writer = index;
    }
  }

  /// Something that must change no result.
  void disturb() {
    Tile& tile = tiles_[random_.below(tiles_.size())];
    const auto space = static_cast<SpaceId>(1 + random_.below(3));
    switch (random_.below(6)) {
      case 0:
        memory_.write_backs().clean_ahead(space);
        break;
      case 1:
        memory_.residency().evict(tile.id);
        break;
      case 2:
        memory_.staging().prefetch(tile.id, space, position_ + random_.below(5),
                                   memory_.pool(space).residents());
        break;
      case 3:
        progress();
        break;
      case 4:
        if (tile.last_writer < 0) memory_.write_backs().write_back(tile.id, Reason::final);
        break;
      default:
        check_home(tile);
        break;
    }
  }

  void check_home(Tile& tile) {
    if (!tile.written) return;
    ASSERT_TRUE(write_home(tile));
    // A tile's own home, or the host, where its content passes through a buffer.
    const SpaceId space = random_.chance(0.5) ? host_space : tile.space;
    const std::array needs{Need{tile.id, Access::read}};
    ASSERT_NO_FATAL_FAILURE(stage({.needs = {needs.begin(), needs.end()}, .space = space}));
    while (!memory_.directory().arrived(tile.id, space)) ASSERT_TRUE(progress());
    const std::byte* const data = memory_.replicas().address(tile.id, space);
    if (tile.home && space == tile.space) {
      EXPECT_EQ(static_cast<const void*>(data), tile.home);
    }
    const std::size_t width = static_cast<std::size_t>(tile.shape.rows) * sizeof(std::uint64_t);
    for (std::int64_t col = 0; col < tile.shape.cols; ++col)
      if (std::memcmp(
              data + static_cast<std::size_t>(col) * memory_.replicas().pitch(tile.id, space),
              &tile.expected[static_cast<std::size_t>(col * tile.shape.rows)], width) != 0)
        ++wrong_columns_;
    memory_.residency().unpin(tile.id, space);
  }

  void run() {
    add_tiles(GetParam() % 4 < 2);
    make_plan(400);
    for (int index = 0; index < static_cast<int>(plan_.size()); ++index) {
      position_ = static_cast<std::uint64_t>(index);
      ASSERT_NO_FATAL_FAILURE(issue(index));
      if (random_.chance(0.5)) {
        ASSERT_NO_FATAL_FAILURE(disturb());
      }
      memory_.validate();
    }
    position_ = plan_.size();
    for (Tile& tile : tiles_)
      if (random_.chance(0.7)) {
        ASSERT_NO_FATAL_FAILURE(check_home(tile));
      }
    while (progress()) continue;
  }

  Random random_{static_cast<std::uint64_t>(GetParam())};
  Machine machine_ = machine_of(GetParam());
  std::unique_ptr<Backend> backend_ = make_virtual_backend(large_machine(GetParam()));
  const SpacesOfDevices spaces_{*backend_, machine_};
  Instructions instructions_;
  Memory memory_{instructions_, machine_, spaces_.resources, *this, *this, host_of(GetParam())};
  std::deque<Words> homes_;
  std::array<StreamId, 4> streams_{0, backend_->create_stream(0, StreamKind::compute),
                                   backend_->create_stream(1, StreamKind::compute),
                                   backend_->create_stream(2, StreamKind::compute)};
  std::vector<Tile> tiles_ = std::vector<Tile>(most_tiles);
  std::map<TileId, Tile*> by_id_;
  std::vector<Work> plan_;
  std::uint64_t position_ = 0;
  std::vector<std::uint64_t> told_;  ///< Next uses, by tile and space.
  std::map<std::pair<StreamId, std::uint64_t>, Running> running_;
  std::map<StreamId, std::uint64_t> launches_;
  int copies_ = 0, evictions_ = 0, wrong_columns_ = 0, to_file_ = 0, from_file_ = 0;
  std::set<int> nodes_;    ///< Of the host, where copies have ended.
  bool careless_ = false;  ///< Kernels don't wait for their operands: a planted bug.
};

TEST_P(MemoryModelTest, GivesWhatPlainArraysGive) {
  ASSERT_NO_FATAL_FAILURE(run());
  EXPECT_EQ(wrong_columns_, 0) << "seed " << GetParam();
  EXPECT_GT(copies_, 100);
  EXPECT_GT(evictions_, 50);
  const bool has_nodes = GetParam() % seeds_a_two_nodes == 0;
  EXPECT_EQ(nodes_.contains(0) && nodes_.contains(1), has_nodes) << "both nodes have had buffers";
  const bool are_equal = GetParam() % 4 < 2;  // Small tiles may fit the buffers.
  if (GetParam() < file_from) {
    EXPECT_EQ(to_file_, 0);
  }
  if (GetParam() >= file_from && are_equal) {
    EXPECT_GT(to_file_, 5);
    EXPECT_GT(from_file_, 5);
  }
  // Whether it is home or not: what is given up needn't be written back.
  for (const Tile& tile : tiles_) memory_.residency().remove(tile.id);
  memory_.validate();
  EXPECT_EQ(memory_.residency().spill().used(), 0u);
}

TEST_P(MemoryModelTest, FindsKernelsThatDoNotWait) {
  careless_ = true;
  ASSERT_NO_FATAL_FAILURE(run());
  EXPECT_GT(wrong_columns_, 0) << "seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seed, MemoryModelTest, ::testing::Range(0, 48));

}  // namespace
}  // namespace quadriga
