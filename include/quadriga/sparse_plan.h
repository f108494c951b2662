// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/sparse_plan.h: how the rows of a sparse matrix are partitioned, and what a
// product should take.
#pragma once

#include <quadriga/sparse_multigrid.h>
#include <quadriga/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga::sparse {

/// What parts send to each other before a product. Results are bitwise identical.
enum class Exchange : std::uint8_t {
  automatic,  ///< Halo lists.
  halo,       ///< The elements of the vector that the receiver's rows need.
  whole,      ///< All of the sender's.
};

/// How it travels. Results are bitwise identical.
enum class CopyRoute : std::uint8_t {
  automatic,  ///< As the machine's fastest route for each pair of devices.
  direct,     ///< The same; by way of the host only where no route joins two devices.
  host,       ///< By way of the host, always.
};

/// How a part's product is divided into what needs nothing of other parts, and the rest.
enum class Split : std::uint8_t {
  rows,  ///< Rows stay whole. The same bits for any number of parts.
  /// Own columns of all rows, then those of each other part once its elements are here, in the
  /// order of parts. Bits depend on the parts, and are the same again for the same ones.
  columns,
};

/// "rows" or "columns".
std::string_view name(Split split) noexcept;

/// How iterations of conjugate gradients are arranged. All have the same bits for any number of
/// devices of a kind, each its own. With M of several steps they are classic. The automatic choice
/// looks at what a device's memory holds: under another limit it may be another, with its bits.
enum class CgMethod : std::uint8_t {
  automatic,         ///< As the machine's figures say for one device; classic without figures.
  classic,           ///< Hestenes and Stiefel: two sums over all devices, one after the other.
  single_reduction,  ///< Chronopoulos and Gear: one; two vectors more.
  pipelined,         ///< Ghysels and Vanroose: one, formed during the product; six vectors more.
};

/// "automatic", "classic" and so on.
std::string_view name(CgMethod method) noexcept;

/// What is measured of a product.
enum class ProductMode : std::uint8_t {
  planned,     ///< As solves do it.
  compute,     ///< Without exchange.
  in_turn,     ///< All rows wait for the exchange.
  overlapped,  ///< Rows that need nothing of other parts don't.
};

/// Predicted time of a product on a part's device, by the machine's description.
struct ProductModel {
  double compute_seconds = 0;   ///< Its bytes at the rate of the device's memory.
  double exchange_seconds = 0;  ///< Its halo, over otherwise idle links.
  /// With overlap, as the split allows: what needs the halo is computed when that is here.
  double reachable_seconds = 0;

  double in_turn_seconds() const noexcept { return compute_seconds + exchange_seconds; }
  double overlapped_seconds() const noexcept { return std::max(compute_seconds, exchange_seconds); }
  /// The fraction of in_turn_seconds() that overlap can save: at most a half.
  double largest_gain() const noexcept {
    return in_turn_seconds() > 0 ? 1 - overlapped_seconds() / in_turn_seconds() : 0;
  }
};

/// A way to exchange, and a product's time on each part.
struct ProductEstimate {
  Exchange exchange = Exchange::halo;
  CopyRoute route = CopyRoute::direct;
  std::vector<ProductModel> parts;
};

/// A level of a preconditioner.
struct LevelReport {
  std::int64_t rows = 0;
  std::int64_t elements = 0;
};

/// How the rows are partitioned.
struct PlanReport {
  std::int64_t block_rows = 0;          ///< Rows per block of the sums.
  int dense_rows = 1;                   ///< Of a dense block, if the format has those.
  CgMethod method = CgMethod::classic;  ///< Of checked solves.
  std::string method_reason;            ///< Why that one.
  Split split = Split::rows;
  bool recorded = false;                   ///< Whether several iterations are one program.
  std::vector<bool> overlaps;              ///< Of each part: whether its inner rows don't wait.
  std::vector<std::int64_t> first_rows;    ///< Of each part, and the number of rows.
  std::vector<DeviceId> devices;           ///< Of each part; no_device: any core.
  std::vector<std::int64_t> halo_rows;     ///< Elements of vectors that each part needs of others.
  std::vector<std::int64_t> border_rows;   ///< Rows of blocks that need some of these.
  std::vector<std::size_t> bytes;          ///< Of each part of the matrix.
  std::vector<ProductModel> models;        ///< Of each part; empty if the machine has no rates.
  EigenvalueBounds eigenvalues;            ///< Where M is several steps: of D^-1*A, estimated.
  std::vector<LevelReport> levels;         ///< Of M, the finest first; empty if it has one.
  std::vector<ProductEstimate> estimates;  ///< Of other ways, too; empty likewise.
  /// Bytes of parts and of their vectors, one column, that don't fit their devices: so many pass
  /// the links in each iteration, and take so long at least, on the device that takes longest.
  double streamed_bytes = 0;
  double streamed_seconds = 0;
  double seconds = 0;  ///< Time to check, partition and store the matrix, with the next one.
  double recording_seconds = 0;  ///< To bring it to the devices and record iterations there.
};

}  // namespace quadriga::sparse
