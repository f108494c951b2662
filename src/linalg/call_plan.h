// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/call_plan.h: the one plan of a call: tiles, who owns them, and in which order they are
// computed.
#pragma once

#include "linalg/device_group.h"
#include "linalg/order.h"
#include "linalg/product_plan.h"

#include <quadriga/linalg.h>

#include <vector>

namespace quadriga::linalg {

/// Tiles of the result lie at (rows, cols), `sum` is what they sum over. Orders of products are
/// those of product_orders(); those of a triangle follow from `triangle`, by cholesky_order() and
/// cholesky_owner().
struct CallPlan : ProductPlan {
  DeviceGroup group;       ///< Who computes; owners are places in it.
  CholeskyShape triangle;  ///< Of factorizations, rank updates and solves.
};

/// Plans a call by its sizes and the machine's description, which the engine has.
///
/// `home`: the device in whose memory all operands lie and stay, or no_device. There that device
/// alone computes, by the tiles that take least time, or all devices, whichever is sooner by the
/// description. Options::tile and Options::reproducible restrict the choice.
CallPlan plan(const Engine& engine, const Problem& problem, DeviceId home, const Options& options);

/// The same for what has the sizes of a factorization and isn't one: no tiles are tried.
CallPlan plan_like_factorization(const Engine& engine, const Problem& problem,
                                 const Options& options);

/// What each device of a product's plan does, in order: its list schedule, the panels that the plan
/// says, or what its memory allows.
std::vector<ProductOrder> product_orders(const Engine& engine, const CallPlan& plan, DType dtype);

/// C = A*B + beta*C by a plan of the caller's, for trials of plans; C has contiguous columns.
void matmul_by(Engine& engine, const Matrix& a, const Matrix& b, Coefficient beta,
               const MatrixView& c, const Options& options, CallPlan plan);

}  // namespace quadriga::linalg
