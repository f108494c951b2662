// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/factor.h: what a Factor owns: its tiles, where they are, and how they are to be taken.
#pragma once

#include "engine/let_go.h"
#include "linalg/cholesky.h"

namespace quadriga::linalg {

/// The tiles of a factor's triangle; they outlive the runs that use them.
class FactorTiles final : public Tiles {
 public:
  /// Without a home; or, if `home` has memory, in it.
  FactorTiles(Engine& engine, Tiling tiling, DType dtype, Uplo stored, const MatrixView& home);
  /// Home gets the content; without one it is gone.
  ~FactorTiles() override;
  Data read(std::int64_t i, std::int64_t j, SubmitOptions) override { return tile(i, j); }
  Data update(std::int64_t i, std::int64_t j, SubmitOptions) override { return tile(i, j); }
  Data write(std::int64_t i, std::int64_t j, SubmitOptions) override { return tile(i, j); }
  void final(std::int64_t, std::int64_t) override {}

  Engine& engine() const noexcept { return engine_; }
  bool has_home() const noexcept { return home_.data != nullptr; }
  /// Home gets the content that it lacks, in one go; replicas on devices stay.
  void bring_home() const;
  /// What the tiles hold is no factor, and needn't go home.
  void discard() noexcept { discard_ = true; }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Data& data : tiles_)
      if (data) visit(data);
  }
  /// A device that has the tile, or no_device; by index().
  std::vector<DeviceId> holders() const;
  /// Of a stored tile, among those of the triangle.
  std::size_t index(std::int64_t i, std::int64_t j) const noexcept {
    const auto [large, small] = stored_ == Uplo::lower ? std::pair(i, j) : std::pair(j, i);
    return static_cast<std::size_t>(large * (large + 1) / 2 + small);
  }
  const MatrixView& home() const noexcept { return home_; }

 private:
  Data tile(std::int64_t i, std::int64_t j);

  Engine& engine_;
  const LetGo let_go_;
  Uplo stored_;
  MatrixView home_;
  bool discard_ = false;
  std::vector<Data> tiles_;
};

/// Sums up what is stored: S = F*F^H (lower) or F^H*F (upper), where S is A or its conjugate.
struct FactorContent {
  std::unique_ptr<FactorTiles> tiles;
  Uplo uplo = Uplo::lower;    ///< Of the factor that the user means.
  Uplo stored = Uplo::lower;  ///< Of the tiles.
  /// The tiles hold the transpose of the factor; for complex types S is then A's conjugate.
  bool transposed = false;

  Triangle triangle() const noexcept { return {tiles.get(), stored}; }
  const Tiling& tiling() const noexcept { return tiles->rows(); }
  DType dtype() const noexcept { return tiles->dtype(); }
};

}  // namespace quadriga::linalg
