// SPDX-License-Identifier: BSD-3-Clause
// bench/tile_kernels.cpp: queues kernels on a backend and takes the median of their times.
#include "tile_kernels.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <array>
#include <exception>

#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/codelets.h"
#include "line.h"

namespace quadriga::bench {
namespace {

enum Tile { a, b, c, definite, factored };

template <class Params>
std::span<const std::byte> bytes_of(const Params& params) {
  return std::as_bytes(std::span(&params, 1));
}

/// As many as take some time together, so that a start or an end hardly counts.
int in_a_row(std::int64_t order) { return order <= 256 ? 32 : order <= 1024 ? 8 : 3; }

}  // namespace

std::string_view name_of(TileKernel kernel, DType type) {
  const std::size_t index = kernels::type_index(type);
  switch (kernel) {
    case TileKernel::gemm:
      return kernels::gemm_names[index];
    case TileKernel::syrk:
      return kernels::syrk_names[index];
    case TileKernel::trsm:
      return kernels::trsm_names[index];
    case TileKernel::potrf:
      break;
  }
  return kernels::potrf_names[index];
}

TimedTiles::TimedTiles(Backend& backend, DeviceId device, std::span<const StreamId> streams,
                       DType type, std::int64_t order)
    : backend_(backend), device_(device), type_(type), order_(order) {
  for (const StreamId stream : streams) sets_.push_back({stream});
  for (Set& set : sets_)
    for (std::byte*& memory : set.memory) {
      memory = allocate();
      if (memory == nullptr)
        fail(Errc::too_large, fmt::format("no room for tiles of order {}", order));
    }
  for (Set& set : sets_) fill(set);
  wait();
}

TimedTiles::~TimedTiles() {
  if (!on_host_.empty()) return;
  for (Set& set : sets_)
    for (std::byte* const memory : set.memory)
      if (memory != nullptr) backend_.deallocate(device_, memory);
}

std::byte* TimedTiles::allocate() {
  const auto bytes = static_cast<std::size_t>(order_ * order_) * size_of(type_);
  if (backend_.machine().devices[device_].space != host_space)
    return backend_.allocate(device_, bytes);
  return on_host_.emplace_back(bytes).data();
}

View TimedTiles::tile(const Set& set, int number) const {
  return {set.memory[number], order_, order_, order_, type_};
}

/// The definite one has so much on its diagonal that solves by it keep the size of numbers.
void TimedTiles::fill(Set& set) {
  for (int number = a; number <= factored; ++number) {
    const kernels::RandomMatrix random_bits{.seed = static_cast<std::uint64_t>(5 + number)};
    const View view = tile(set, number);
    queue(set, kernels::random_codelet(type_), {&view, 1}, bytes_of(random_bits));
  }
  const View view = tile(set, definite);
  const kernels::AddDiagonalParams diagonal{{static_cast<double>(order_), 0}, 0};
  queue(set, kernels::add_diagonal_codelet(type_), {&view, 1}, bytes_of(diagonal));
}

const TimedTiles::Prepared& TimedTiles::prepare(const Set& set, const Codelet& codelet,
                                                std::span<const View> operands,
                                                std::span<const std::byte> params) {
  const auto found = std::ranges::find_if(prepared_, [&](const Prepared& each) {
    return each.codelet == &codelet && each.stream == set.stream &&
           each.operands.front().data == operands.front().data;
  });
  if (found != prepared_.end()) return *found;
  return prepared_.emplace_back(Prepared{
      &codelet, set.stream, {operands.begin(), operands.end()}, {params.begin(), params.end()}});
}

void TimedTiles::queue(const Set& set, const Codelet& codelet, std::span<const View> operands,
                       std::span<const std::byte> params) {
  const bool is_cuda = backend_.machine().devices[device_].kind == DeviceKind::cuda;
  const Prepared& kept = prepare(set, codelet, operands, params);
  Launch launch;
  launch.kernel = is_cuda ? &codelet.cuda : &codelet.cpu;
  launch.arguments.operands = kept.operands;
  launch.arguments.params = kept.params;
  launch.name = codelet.name;
  backend_.launch(set.stream, launch);
  ++queued_;
}

void TimedTiles::queue_copy(const Set& set) {
  const std::array operands{tile(set, definite), tile(set, factored)};
  queue(set, kernels::copy_codelet(type_), operands, bytes_of(kernels::CopyParams{}));
}

void TimedTiles::queue(const Set& set, TileKernel kernel) {
  const std::array three{tile(set, a), tile(set, b), tile(set, c)};
  const std::array update{three[0], three[2]};
  const std::array solve{tile(set, definite), three[1]};
  const View factor = tile(set, factored);
  const kernels::GemmParams product{
      .alpha = {-1, 0}, .beta = {1, 0}, .op_b = kernels::Op::transpose};
  const kernels::SyrkParams square{.alpha = {-1, 0}, .beta = {1, 0}};
  const kernels::TrsmParams divide{.alpha = {static_cast<double>(order_), 0},
                                   .side = kernels::Side::right,
                                   .op = kernels::Op::transpose};
  switch (kernel) {
    case TileKernel::gemm:
      return queue(set, kernels::gemm_codelet(type_), three, bytes_of(product));
    case TileKernel::syrk:
      return queue(set, kernels::syrk_codelet(type_), update, bytes_of(square));
    case TileKernel::trsm:
      return queue(set, kernels::trsm_codelet(type_), solve, bytes_of(divide));
    case TileKernel::potrf:
      queue_copy(set);  // a factor is no positive definite matrix any more
      return queue(set, kernels::potrf_codelet(type_), {&factor, 1},
                   bytes_of(kernels::PotrfParams{}));
  }
}

void TimedTiles::wait() {
  std::exception_ptr error;
  for (Completion completion; queued_ > 0;) {
    if (backend_.next_completion({&completion, 1}, never) == 0) continue;
    --queued_;
    if (completion.error) error = completion.error;
  }
  if (error) std::rethrow_exception(error);
}

/// Of one of `count`.
template <class Queue>
double TimedTiles::median_of(int repeat, int count, Queue&& queue_all) {
  std::vector<double> times;
  for (int time = 0; time <= repeat; ++time) {
    const double begin = now();
    for (int i = 0; i < count; ++i) queue_all();
    wait();
    if (time > 0) times.push_back((now() - begin) / count);  // the first one warms up
  }
  return median(std::move(times));
}

double TimedTiles::seconds(TileKernel kernel, int repeat) {
  const int count = in_a_row(order_);
  const double all = median_of(repeat, count, [&] { queue(sets_.front(), kernel); });
  if (kernel != TileKernel::potrf) return all;
  const double copies = median_of(repeat, count, [&] { queue_copy(sets_.front()); });
  return std::max(all - copies, 0.1 * all);
}

double TimedTiles::gain(TileKernel kernel, int at_once, int repeat) {
  const int count = in_a_row(order_);
  const double alone = median_of(repeat, count, [&] { queue(sets_.front(), kernel); });
  const double together = median_of(repeat, count, [&] {
    for (int i = 0; i < at_once; ++i) queue(sets_[static_cast<std::size_t>(i)], kernel);
  });
  return std::clamp(at_once * alone / together, 1.0, static_cast<double>(at_once));
}

double TimedTiles::launch_seconds(int repeat) {
  constexpr int count = 200;
  const View view{sets_.front().memory[a], 1, 1, 1, type_};
  const kernels::ScaleParams unchanged{{1, 0}, {}};
  return median_of(repeat, count, [&] {
    queue(sets_.front(), kernels::scale_codelet(type_), {&view, 1}, bytes_of(unchanged));
  });
}

}  // namespace quadriga::bench
