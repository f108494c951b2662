// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/content.h: a matrix in parts on an engine, its plan of exchange, and codelets by
// the number of columns.
#pragma once

#include <quadriga/sparse.h>

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "sparse/formats.h"
#include "sparse/kernels/part_codelets.h"
#include "sparse/level_maker.h"
#include "sparse/levels.h"
#include "sparse/pack.h"
#include "sparse/row_reader.h"
#include "sparse/stored_matrix.h"

namespace quadriga::sparse {

class PartData;

/// What iterations take for M.
enum class MKind : std::uint8_t {
  chosen,  ///< What the solver was made with.
  blocks,  ///< The inverses of blocks that its smoother has; the method is classic.
};

/// What a solver keeps. Nothing of it changes after its making, but for values and what is cached.
struct Places;

class SolverContent {
 public:
  SolverContent(Engine& engine, const RowReader& a, const SolverOptions& options);
  ~SolverContent();
  SolverContent(const SolverContent&) = delete;
  SolverContent& operator=(const SolverContent&) = delete;

  /// New values at the same places, and of a diagonal preconditioner. Nothing else may be in use.
  /// Errors: invalid_argument if other places have elements; nothing has changed then.
  void update(const RowReader& a, const void* diagonal);

  Engine& engine() const noexcept { return engine_; }
  std::int64_t rows() const noexcept { return rows_; }
  DType dtype() const noexcept { return dtype_; }
  Format format() const noexcept { return chosen_.format; }
  CgMethod method() const noexcept { return report_.method; }
  const PlanReport& report() const noexcept { return report_; }

  std::size_t parts() const noexcept { return plans_.size(); }
  const PartPlan& plan(std::size_t part) const { return plans_[part]; }
  std::int64_t first_row(std::size_t part) const { return report_.first_rows[part]; }
  const std::vector<HaloTransfer>& transfers() const noexcept { return transfers_; }
  Data matrix(std::size_t part) const { return stored_.matrix(part); }
  /// By arrival, where products are split by columns: the elements in the sender's columns.
  std::span<const Data> remainders(std::size_t part) const { return stored_.remainders(part); }
  /// What tasks other than products read of it. A matrix that passes through its devices has copies
  /// of these arrays, so that it passes once an iteration.
  Data head(std::size_t part) const { return stored_.head(part); }
  DeviceId device(std::size_t part) const { return report_.devices[part]; }
  /// Whether a part's product is two tasks, so that the first needn't wait for the halo.
  bool splits(std::size_t part) const { return report_.overlaps[part]; }
  /// Whether it may be.
  bool can_overlap(std::size_t part) const;
  /// Whether what two parts exchange is copied on the host.
  bool goes_by_host(const HaloTransfer& transfer) const {
    return goes_by_host_ && device(static_cast<std::size_t>(transfer.from)) !=
                                device(static_cast<std::size_t>(transfer.to));
  }
  /// Whether iterations are recorded: several are one task, of a matrix in one part.
  bool is_alone_recorded() const noexcept { return is_recorded_ && parts() == 1; }
  /// The same of several parts: one task a part, as long as no device is lost.
  bool are_joint() const;
  /// Whether a device of its parts is lost.
  bool has_lost_device() const;
  /// The caller wants no others.
  bool must_record() const noexcept { return must_record_; }
  /// M, where that is several tasks; else null.
  const Levels* levels() const noexcept { return levels_.get(); }
  /// The codelets of solves with so many columns; any thread.
  const SolveCodelets& codelets(std::int64_t columns, MKind kind) const;
  /// Data that an earlier call left; null: none. Any thread, as the next one.
  std::unique_ptr<PartData> take_data(std::int64_t columns) const;
  void give_back(std::unique_ptr<PartData> data) const;

 private:
  std::int64_t row_bytes_of(CgMethod method) const noexcept;
  Places places_of(const CsrView& a, const SolverOptions& options, CgMethod method) const;
  std::vector<DeviceId> spread_over(const CsrView& a, const SolverOptions& options) const;
  void place(const RowReader& reader, const SolverOptions& options);
  void cut(const CsrView& a, const Places& places);
  void plan_parts(const RowReader& a);
  PartRows rows_of(std::size_t part) const;
  void store(const RowReader& a, const SolverOptions& options);
  bool choose_recorded(const SolverOptions& options) const;
  bool choose_overlap(std::size_t part) const;
  SolverOptions completed(const RowReader& a, const SolverOptions& options);
  void make_levels(const CsrView& a, const SolverOptions& options);
  void set_levels(std::vector<Level> levels);

  Engine& engine_;
  std::int64_t rows_;
  DType dtype_;
  ChosenFormat chosen_;
  RowUnits units_;
  Storage storage_;
  std::optional<bool> overlap_;
  bool goes_by_host_;
  Precondition precondition_;
  Precondition scaling_ = Precondition::none;  ///< What is stored of M with the rows.
  int degree_;
  int unknowns_ = 1;  ///< Rows of a node, where M has levels.
  PlanReport report_;
  bool is_recorded_ = false;
  bool must_record_ = false;
  std::vector<Halo> halos_;
  std::vector<std::vector<std::int64_t>> send_rows_;  ///< Of the matrix, by part.
  std::vector<HaloTransfer> transfers_;
  std::vector<PartPlan> plans_;
  StoredMatrix stored_;
  std::unique_ptr<Levels> levels_;
  std::unique_ptr<LevelMaker> level_maker_;
  mutable std::mutex mutex_;  ///< Guards the codelets and the data.
  mutable std::map<std::pair<std::int64_t, MKind>, std::unique_ptr<SolveCodelets>> codelets_;
  mutable std::unique_ptr<PartData> idle_;  ///< Of the last call that ended well.
};

/// Runs `work(index)` for all indices as tasks of the engine on host threads; where no cores are to
/// compute, on threads of its own, as many as cores are there.
/// Errors: the first that `work` threw.
void run_on_host(Engine& engine, std::size_t count, const std::function<void(std::size_t)>& work);
/// The same, of the engine.
RunAll on_host(Engine& engine);

/// Devices that compute, with their shares; one no_device a core where all is on the host.
struct Places {
  std::vector<DeviceId> devices;
  std::vector<double> weights;
  double saved_by_cores = 0;  ///< Seconds an iteration, if cores beside devices got parts.
};

struct PlacesWanted {
  int parts = 0;     ///< 0: one a device or core, more where the bytes don't fit beside others.
  double bytes = 0;  ///< Of the matrix and an iteration's vectors.
  /// Those devices only that make an iteration shorter by the machine's figures, or by a
  /// measurement where these don't decide: more of them read less each, but wait for each other's
  /// sums.
  bool may_leave_out = false;
  bool may_add_cores = false;  ///< Then also those of the host that make it shorter.
};

Places choose_places(Engine& engine, const PlacesWanted& asked);

}  // namespace quadriga::sparse
