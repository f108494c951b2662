// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/order.h: in which order tile operations are submitted, and who owns them. Pure.
//
// Each tile of a result gets its updates with k ascending, whatever the order: results are the same
// to the bit for all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace quadriga::linalg {

/// Begin and end (not included) of tile indices.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const noexcept { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Part `index` of `parts` nearly equal parts.
Range share(std::int64_t count, std::int64_t parts, std::int64_t index) noexcept;

/// Devices as rows x cols.
struct Grid {
  std::int64_t rows = 1;
  std::int64_t cols = 1;
};

/// One C(i,j) += A(i,k)*B(k,j).
struct Product {
  std::int32_t i = 0;
  std::int32_t j = 0;
  std::int32_t k = 0;
  bool operator==(const Product&) const = default;
};

/// Products of one device, in tiles.
struct ProductShape {
  Range rows;               ///< Of C and A.
  Range cols;               ///< Of C and B.
  std::int64_t inner = 0;   ///< Columns of A, rows of B.
  std::int64_t memory = 0;  ///< Tiles that the device holds; 0: it works on the host's memory.
  double load_ratio = 0;    ///< Time to bring a tile over the time of a product.
};

/// The grid of contiguous rectangles of C that makes the devices load least.
Grid product_grid(std::int64_t devices, std::int64_t rows, std::int64_t cols) noexcept;

/// Panels of A's rows that stay on a device one after the other, while columns of B and C stream
/// past.
struct PanelShape {
  Range rows;                 ///< Of C and A.
  Range cols;                 ///< Of C and B.
  std::int64_t inner = 0;     ///< Columns of A.
  std::int64_t at_start = 1;  ///< Columns of C that advance together first.
  std::int64_t height = 1;    ///< Rows of a panel, at most.
  bool grows = false;         ///< What advances first is a box that grows.
};

/// The generator of a device's products: a set of tiles stays, the rest streams past.
///
/// Of three ways the one with the least traffic is taken: a panel of A's rows stays on the device
/// while columns of B and C stream past; or a panel of B's columns stays; or a block of C stays
/// while A and B stream past along k. Where the link is the limit, at the start, a box grows by the
/// slab that gives most products for the tiles it brings; every other panel goes through the
/// columns backwards, and between panels the last column and the first go along k, so that one
/// panel is replaced by the next tile by tile. Where all stays, a list schedule is given as it is.
class ProductOrder {
 public:
  explicit ProductOrder(const ProductShape& shape);
  explicit ProductOrder(const PanelShape& shape);
  explicit ProductOrder(std::vector<Product> listed) : stage_(std::move(listed)) {}
  /// The next product; false if there is none.
  bool next(Product& out);

 private:
  enum class Way : std::uint8_t {
    by_tile,  ///< One tile of C after the other.
    by_step,  ///< k outermost.
    growing,
  };
  struct Stage {
    Range rows;
    Range cols;
    Range inner;
    Way way = Way::by_tile;
  };
  void add_panels(const PanelShape& shape);
  void add_panel(const PanelShape& shape, std::int64_t panel, std::int64_t panels);
  void add_blocks(const ProductShape& shape, std::int64_t height, std::int64_t width);
  bool next_stage();
  void fill(const Stage& stage);
  void grow(const Stage& stage);

  std::vector<Stage> stages_;
  std::size_t begun_ = 0;       ///< Of these.
  std::vector<Product> stage_;  ///< Products of the one that goes on,
  std::size_t given_ = 0;       ///< of which so many were handed out.
  bool turned_ = false;         ///< Rows and columns are exchanged: stages are those of C^T.
};

/// Tiles of A and B that ProductOrder brings to a device that doesn't work on the host's memory.
std::int64_t product_traffic(const ProductShape& shape) noexcept;

/// Products of one device that holds all tiles of A, B and C at once, and their times.
struct ListShape {
  Range rows;              ///< Of C and A.
  Range cols;              ///< Of C and B.
  std::int64_t inner = 0;  ///< Columns of A.
  std::int64_t steps = 1;  ///< Columns of A that one tile of B serves.
  double product = 1;      ///< Seconds, or any other unit, of a product,
  double load_a = 0;       ///< of bringing a tile,
  double load_b = 0;
  double load_c = 0;  ///< (0: C is overwritten)
  double store_c = 0;
  /// Devices that need the same rows of A: of so many in turn the device brings the first, and has
  /// the rest from the others at the same time. The same for columns of B.
  std::int64_t sharers_a = 1;
  std::int64_t sharers_b = 1;
  /// Where tiles differ: the lengths of columns of C and of A, as parts of those that the times are
  /// of, and the time of each product, by column of C within column of A. Empty: all are alike.
  std::vector<double> widths = {};
  std::vector<double> depths = {};
  std::vector<double> products = {};
  bool operator==(const ListShape&) const = default;
};

/// All products in the order of a list schedule, replacing `out`; returns when the last tile of C
/// would be home. Tiles come in an order in which a box grows by the slab that gives most products
/// for its time; whenever the device is free, the first column of C goes on that can, so that
/// columns are done one after the other and go home meanwhile. If no schedule ends before the
/// limit: the limit, and `out` is empty.
double list_products(const ListShape& shape, std::vector<Product>& out,
                     double limit = std::numeric_limits<double>::infinity());

/// One operation of a Cholesky factorization: on tile (i,j), by column k.
struct Step {
  enum class Kind : std::uint8_t { potrf, trsm, syrk, gemm } kind = Kind::potrf;
  std::int32_t i = 0;
  std::int32_t j = 0;
  std::int32_t k = 0;      ///< potrf(k,k); trsm(i,k); syrk(i,i) by column k; gemm(i,j) by column k.
  std::int32_t owner = 0;  ///< Place in the group.
  std::int32_t priority = 0;
  bool operator==(const Step&) const = default;
};

/// A lower triangle of tiles on a group of devices.
struct CholeskyShape {
  std::int64_t tiles = 0;  ///< Its order.
  std::int64_t devices = 1;
  std::int64_t places = 0;  ///< That share the work, where faster devices have several; 0: devices.
  std::int64_t memory = 0;  ///< Tiles that each device holds; 0: the host's memory.
  double potrf_seconds = 1;  ///< Of one task each; their ratios are what counts.
  double trsm_seconds = 1;
  double syrk_seconds = 1;
  double gemm_seconds = 1;
};

/// Widths of the blocks of columns that are factorized one after the other: one block if the matrix
/// fits the devices together, else as wide as memory allows.
std::vector<std::int64_t> cholesky_blocks(const CholeskyShape& shape);

/// The place that owns tile (i,j).
std::int32_t cholesky_owner(const CholeskyShape& shape, std::int64_t i, std::int64_t j) noexcept;

/// All steps in an order that respects their dependencies: block by block, each first updated by
/// the columns left of it, then factorized right-looking; or row by row if all fits one device.
/// Priorities are upward ranks where several devices or cores share the work.
/// Source: upward rank: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002.
void cholesky_order(const CholeskyShape& shape, const std::function<void(const Step&)>& emit);

}  // namespace quadriga::linalg
