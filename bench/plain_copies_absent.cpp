// SPDX-License-Identifier: BSD-3-Clause
// bench/plain_copies_absent.cpp: stands in for copies by CUDA alone in builds without CUDA.
#include <quadriga/error.h>

#include "benchmarks.h"
#include "copy_flows.h"

namespace quadriga::bench {
namespace {

[[noreturn]] void refuse() {
  fail(Errc::unavailable, "memory of other processes is opened by CUDA alone");
}

}  // namespace

std::unique_ptr<PlainCopies> PlainCopies::make(const Machine&) { return nullptr; }

void measure_ipc(const Machine&, std::span<const std::size_t>,
                 const std::function<void(const IpcFigure&)>&) {
  refuse();
}

void copy_from_other_process(const Settings&) { refuse(); }

}  // namespace quadriga::bench
