// SPDX-License-Identifier: BSD-3-Clause
// src/message/nccl/collectives.h: collectives of data in memory of GPUs that NCCL carries out where
// it is faster: who may, the groups of ranks that it joins, and which way a call takes.
//
// Invariants
//   1. All ranks take the same way: it follows from the call, from what all said in its agreement,
//      and from what they told each other when a group was made or both ways were measured.
//   2. A process has at most one collective of NCCL's under way, whatever communicators and threads
//      it has: a rank takes this turn before the agreement, without waiting, and says so there; who
//      doesn't get it says so too, and all take ours. So NCCL's kernels, which wait for those of
//      other ranks, never wait in a circle.
//   3. Kernels and copies of ours wait for nobody (port_operations.h), and none waits for NCCL's,
//      which have a stream of their own: they may run meanwhile, and end.
//   4. Before NCCL is called on a rank all ranks have agreed, and what it reads is there; the call
//      ends once what it wrote is. So streams of the program are ordered as they are with ours.
//   5. While NCCL is at work its rank looks for the loss of others, for their giving up, for its
//      deadline and its interrupt; then the group is aborted (nccl_group.h) before the call raises.
//   6. `mutex_` of NcclGroups guards the groups; a collective holds it from before its agreement to
//      its end, and nobody waits for it. `report_mutex_` guards the report, for moments.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "message/collective.h"
#include "message/nccl/nccl_group.h"

namespace quadriga::message {

/// What a communicator has of NCCL.
struct NcclReport {
  std::string version;            ///< Empty: NCCL wasn't used.
  std::string library;            ///< Its file.
  std::string absence;            ///< Why it isn't used; empty: it is, or nobody needed it.
  std::uint64_t collectives = 0;  ///< That it carried out.
};

/// Groups of a communicator's ranks that NCCL joins, all of them, each on one GPU.
class NcclGroups {
 public:
  /// Later ones are ours: a program that changes GPUs that often isn't worth it.
  static constexpr std::size_t most_groups = 8;

  NcclReport report() const;
  /// Ends all groups, unless a collective is under way.
  void end();

 private:
  friend class NcclUse;
  struct Member {
    Home home;
    std::unique_ptr<NcclGroup> group;  ///< Null: NCCL refused it on some rank.
    /// By kind, once both ways were measured.
    std::array<std::optional<MeasuredWays>, 5> ways;
  };
  void note(const std::function<void(NcclReport& report)>& change);

  std::mutex mutex_;
  const NcclLibrary* library_ = nullptr;  ///< Asked for once.
  std::vector<Member> members_;           ///< Made in the same order on all ranks.
  mutable std::mutex report_mutex_;
  NcclReport report_;
};

/// NCCL's part in one collective.
class NcclUse {
 public:
  struct Wish {
    TreeCollective kind = TreeCollective::broadcast;
    int root = 0;
    ElementType type = ElementType::bytes;
    ReduceOperation operation = ReduceOperation::sum;
    std::int64_t bytes = 0;  ///< As NcclCall's.
    Home home;               ///< Where this rank's packed data are.
  };
  /// Adds to the terms what this rank can do, if the collective may be NCCL's.
  NcclUse(CommunicatorCore& communicator, CollectiveTerms& terms, const TreeOptions& options,
          Wish wish);
  ~NcclUse();
  NcclUse(const NcclUse&) = delete;
  NcclUse& operator=(const NcclUse&) = delete;

  /// Whether NCCL carries it out: the same on all ranks, once they have agreed. The first time it
  /// joins the ranks, and measures both ways.
  bool is_chosen(Collective& collective);
  /// Of memory of the device, side by side; `into` counts where something is received.
  void carry_out(Collective& collective, const MessageBuffer& from, const MessageBuffer& into);

 private:
  NcclGroups::Member* joined(Collective& collective);
  bool join(Collective& collective, NcclGroups::Member& member);
  MeasuredWays measured(Collective& collective, NcclGroup& group);
  void run(Collective& collective, NcclGroup& group, const NcclCall& call, const void* from,
           void* into);
  void refuse(const std::string& why);

  CommunicatorCore& communicator_;
  const Wish wish_;
  std::optional<NcclNumbers> numbers_;
  const NcclLibrary* library_ = nullptr;  ///< Null: it isn't offered.
  std::unique_lock<std::mutex> hold_;
  bool has_turn_ = false;
  NcclGroups::Member* member_ = nullptr;  ///< Of those that are joined; set if it is chosen.
};

}  // namespace quadriga::message
