// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/simulate.h: calls of the linear algebra on machines that aren't here.
#pragma once

#include <quadriga/linalg.h>

namespace quadriga::linalg {

/// Runs all tasks of a call without data, by the virtual clock, on the machine that the engine
/// describes; nothing is extrapolated or measured. Its counters and trace are the engine's then.
///
///   EngineOptions options;
///   options.devices = "machine=machines/h200x4.json:2,memory=16GiB";
///   options.virtual_clock = true;
///   options.compute = false;
///   Engine engine(options);
///   linalg::simulate(engine, {.kind = Problem::Kind::cholesky, .m = 65536}).seconds
///
/// Errors: invalid_argument if the engine isn't under the virtual clock, computes, or ran something
///         before; if the machine's table lacks a kernel of the call for one of the devices that
///         run it, naming both. too_large if the call would raise it, or for matrices of 1 EiB or
///         more.
Estimate simulate(Engine& engine, const Problem& problem, const Options& options = {});

}  // namespace quadriga::linalg
