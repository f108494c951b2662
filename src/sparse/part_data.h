// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/part_data.h: the data of one solve or product on an engine, and the tasks on them.
//
// Buffers are kept for the next call, unless one failed. Whoever has them submits its tasks from
// one thread.
#pragma once

#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "graph/group.h"
#include "sparse/content.h"
#include "sparse/joint_data.h"
#include "sparse/level_data.h"
#include "sparse/one_reduction_data.h"

namespace quadriga::sparse {

/// What a solve ends with, where one of its tasks failed. Parts that wait for one on a lost device
/// end as cancelled, perhaps before that one ends: these alone count as a loss.
std::exception_ptr with_loss(std::exception_ptr failure, bool is_lost);

class PartData {
 public:
  PartData(const SolverContent& content, std::int64_t columns, MKind kind = MKind::chosen);
  ~PartData();
  PartData(const PartData&) = delete;
  PartData& operator=(const PartData&) = delete;

  std::size_t parts() const noexcept { return content_.parts(); }
  /// Of all its tasks; others may join.
  TaskGroup& group() noexcept { return group_; }
  std::int64_t columns() const noexcept { return columns_; }
  const SolveCodelets& codelets() const noexcept { return codelets_; }
  std::size_t states_bytes() const noexcept { return states_.size() * sizeof(ColumnState); }

  /// A vector of the caller's, cut as the rows are, for this call.
  std::vector<Data> add_vector(const void* vector);
  /// Memory on the host, for this call.
  Data add_home(void* home, std::int64_t bytes);
  /// Forgets the call's data. All tasks must have ended well.
  void end_call();

  /// Before anything else of a solve, where iterations are recorded: each device gets its rows of b
  /// and x, in this order, so that x lies where it lay before, and where recordings have it.
  void bring(const std::vector<Data>& b, const std::vector<Data>& x);
  /// p = x, and what others need of it is on its way. What work held before is lost.
  void load(const std::vector<Data>& x);
  /// q = A*p, for all parts. With compute, the halo is what it was.
  void multiply(ProductParams params, ProductMode mode = ProductMode::planned);
  /// r = b - q, or b.
  void residual(const std::vector<Data>& b, ResidualParams params);
  void restart(const RestartParams& params);
  /// How iterate() iterates: as the solver's method, or classic.
  void use(CgMethod method) noexcept { method_ = method; }
  CgMethod method() const noexcept { return method_; }
  /// As load(), but work keeps the rest. Not of classic methods, as the next two.
  void reload(const std::vector<Data>& x);
  /// After restart(): what the first step needs. With the direction, what was carried is replaced.
  void begin_steps(bool keeps_direction);
  /// Classic iterations go on. They may have the direction: after restart() it has a share in the
  /// next one, of which judge_direction() says whether p^H*A*p > 0.
  void become_classic();
  void judge_direction();
  /// So many iterations, at most history_length.
  void iterate(const std::vector<Data>& x, std::int64_t count);
  /// Whether those are one task, or one a part.
  bool is_recorded() const noexcept { return is_recorded_; }
  /// y = A*p, for all parts.
  void apply(const std::vector<Data>& y);
  /// Copies states and history to a tile of the host's.
  void snapshot(Data to);

  /// Waits until data are home; throws what a task threw.
  void wait_for(Data data);
  /// Waits until all tasks have ended and these are home.
  void wait(std::span<const Data> data);
  /// Between two looks at the time: false cancels.
  std::function<bool()> poll;

 private:
  void submit(const Codelet& codelet, std::size_t part);
  template <class Params>
  void submit(const Codelet& codelet, std::size_t part, const Params& params);
  void submit_scalars(const Codelet& codelet, std::initializer_list<Operand> first,
                      const std::vector<Data>& sums, std::span<const std::byte> params = {});
  void take(Data data, Access access) { operands_.push_back({data, access}); }
  void take_sends(std::size_t part, bool is_for_product);
  void take_arrivals(std::size_t part);
  void product_of(std::size_t part, ProductParams params, ProductMode mode);
  void pass_on(std::size_t part);
  void precondition(bool always);
  Relaxation first_relaxation() const;
  void iterate_by_tasks(const std::vector<Data>& x);
  void iterate_recorded(const std::vector<Data>& x, std::int64_t count);
  bool try_recorded(const std::vector<Data>& x, std::int64_t count);
  void raise_failure();
  bool is_classic() const noexcept { return method_ == CgMethod::classic; }

  const SolverContent& content_;
  const std::int64_t columns_;
  const SolveCodelets& codelets_;
  TaskGroup group_;
  bool is_recorded_ = false;
  bool is_backward_ = false;  ///< The next product, of parts that pass through a device.
  std::vector<ColumnState> states_;
  std::vector<IterationRecord> history_;
  std::vector<Data> kept_;
  std::vector<Data> of_call_;
  Data state_;
  Data past_;
  std::vector<Data> work_;
  std::vector<Data> product_sums_;
  std::vector<Data> residual_sums_;
  CgMethod method_ = CgMethod::classic;
  std::optional<LevelData> levels_;          ///< Where M is several tasks.
  std::optional<JointData> joint_;           ///< Where iterations of all parts are one program.
  std::vector<std::vector<Data>> sends_;     ///< By part, as its plan.
  std::vector<std::vector<Data>> arrivals_;  ///< The same buffers or their copies, by receiver.
  std::vector<std::vector<Data>> passed_;    ///< By part, as its sends: copies made on the host.
  std::optional<OneReductionData> one_reduction_;  ///< Where the solver's method is one.
  std::vector<Operand> operands_;                  ///< Scratch.
};

/// A solver's data for one call: taken from those that wait, or made.
class PartLease {
 public:
  PartLease(const SolverContent& content, std::int64_t columns);
  ~PartLease();
  PartLease(const PartLease&) = delete;
  PartLease& operator=(const PartLease&) = delete;
  PartData& operator*() const noexcept { return *data_; }
  PartData* operator->() const noexcept { return data_.get(); }
  /// All tasks have ended well: the next call may use the data, once this is destroyed.
  void end_call();
  /// Another call by who has them.
  PartData& resume() noexcept;

 private:
  const SolverContent& content_;
  std::unique_ptr<PartData> data_;
  bool is_idle_ = false;
};

}  // namespace quadriga::sparse
