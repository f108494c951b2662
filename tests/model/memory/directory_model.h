// SPDX-License-Identifier: BSD-3-Clause
// tests/model/memory/directory_model.h: what a directory must know, told by the contents
// themselves.
//
// Every replica has a memory that holds one integer: the version that was stored there last, or
// garbage. Copies and kernels are queued and carried out later, in any order that their memories
// allow, and some fail. The model tells the directory of each event and then compares: valid() with
// the versions that the queue, carried out, would leave; and once nothing is queued for a memory,
// with what it really holds.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "memory/directory.h"

namespace quadriga {

class DirectoryModel {
 public:
  /// How the directory is told; a test replaces one by a version with a bug.
  struct Teller {
    std::function<void(Directory&, TileId, SpaceId)> write_issued = [](Directory& directory,
                                                                       TileId tile, SpaceId space) {
      directory.write_issued(tile, space);
    };
    std::function<void(Directory&, TileId, SpaceId, SpaceId, bool)> copy_ended =
        [](Directory& directory, TileId tile, SpaceId from, SpaceId to, bool ok) {
          directory.copy_ended(tile, from, to, ok);
        };
  };

  DirectoryModel(std::uint64_t seed, int spaces, Teller teller)
      : random_(seed), directory_(spaces), teller_(std::move(teller)), spaces_(spaces) {}

  /// One random event; empty if the directory agrees with the model after it, else what is wrong.
  std::string step();
  /// Carries out all that is queued. As step().
  std::string drain();

  /// How often each kind of event happened, so that a test can tell that it tested something.
  const std::map<std::string, int>& seen() const { return seen_; }

 private:
  using Version = int;
  static constexpr Version garbage = -1;

  struct Memory {
    Version holds = garbage;      ///< By what was carried out.
    Version will_hold = garbage;  ///< By what is queued, too.
    int pins = 0;
  };
  struct Tile {
    Version newest = garbage;  ///< garbage: written nowhere, or lost.
    SpaceId home = host_space;
    std::vector<Memory> memories;
  };
  struct Operation {
    enum class Kind { copy, write, update, read } kind;
    TileId tile;
    SpaceId from;  ///< Of a kernel: where it runs.
    SpaceId to;
    Version reads;   ///< What it expects; garbage: nothing.
    Version writes;  ///< What it leaves in `to`; garbage: nothing.
  };

  void add_tile();
  void remove_tile();
  void issue_copy();
  void issue_kernel();
  void drop();
  void lose_space();
  void carry_out();
  void end(const Operation& operation, bool ok);

  void arrival_failed(TileId tile, SpaceId space, Version version);
  void expect_same(TileId tile);
  void expect(bool condition, TileId tile, const std::string& what);
  bool refuses(const std::function<void()>& event);
  bool queued(TileId tile, SpaceId space, bool copies_only) const;
  bool holds_newest(TileId tile, SpaceId space) const;
  bool arrived(TileId tile, SpaceId space) const;
  bool last(TileId tile, SpaceId space) const;
  bool written(TileId tile) const;
  bool blocked(std::size_t index) const;
  TileId any_tile();
  SpaceId any_space() {
    return static_cast<SpaceId>(random_.below(static_cast<std::uint64_t>(spaces_)));
  }
  bool chance(int percent) { return static_cast<int>(random_.below(100)) < percent; }

  Random random_;
  Directory directory_;
  Teller teller_;
  int spaces_;
  std::map<TileId, Tile> tiles_;
  std::vector<Operation> queue_;
  std::vector<bool> gone_ = std::vector<bool>(64);
  Version versions_ = 0;
  std::string wrong_;
  std::map<std::string, int> seen_;
};

}  // namespace quadriga
