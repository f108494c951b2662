// SPDX-License-Identifier: BSD-3-Clause
// bench/manual/pipeline.cpp: the stream of manual.h as a pipeline.
#include <quadriga/pipeline.h>

#include "manual/manual.h"

namespace quadriga::bench::manual {

double pipeline(const Work& work, Machine machine) {
  Codelet dummy;
  dummy.name = "dummy";
  dummy.access = {Access::update};
  dummy.cuda = [seconds = work.kernel_seconds_byte](const Arguments& call) {
    const View& x = call.operands[0];
    queue_dummy(static_cast<cudaStream_t>(call.stream), x.as<std::byte>(), bytes_of(x), seconds);
  };
  EngineOptions options;
  options.machine = std::move(machine);
  Engine engine(options);
  Pipeline stream({.host_memory = "1TiB", .engine = &engine});
  stream.source([&](quadriga::Chunk& chunk) {
    if (chunk.number() == work.chunks.size()) return false;
    const auto [memory, bytes] = work.chunks[chunk.number()];
    const auto rows = static_cast<std::int64_t>(bytes);
    chunk.lend("x", {memory, rows, 1, rows, DType::bytes});
    return true;
  });
  return stream.kernel(dummy, {updates("x")}).run().seconds;
}

}  // namespace quadriga::bench::manual
