// SPDX-License-Identifier: BSD-3-Clause
// examples/stream.cpp: a stream in C++: a file's blocks, a kernel on two devices, results in order.
// Build: c++ -std=c++20 stream.cpp $(pkg-config --cflags --libs quadriga)
#include <quadriga/pipeline.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

using quadriga::Access;
using quadriga::Chunk;
using quadriga::DType;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A file of bytes with a pattern, and no name.
File pattern(int bytes) {
  File file(std::tmpfile(), &std::fclose);
  if (!file) throw std::runtime_error("no temporary file");
  for (int i = 0; i < bytes; ++i) std::fputc(i % 251, file.get());
  std::rewind(file.get());
  return file;
}

/// On a device: how often each value occurs.
void count(const quadriga::Arguments& arguments) {
  const quadriga::View& bytes = arguments.operands[0];
  auto* const counts = arguments.operands[1].as<double>();
  std::fill_n(counts, 256, 0.0);
  for (std::int64_t i = 0; i < bytes.rows; ++i) ++counts[bytes.as<std::uint8_t>()[i]];
}

}  // namespace

int main() {
  constexpr int size = 1'000'000;
  constexpr int block = 1 << 16;
  const File file = pattern(size);
  const quadriga::Codelet counting{
      .name = "count", .access = {Access::read, Access::write}, .cpu = count};
  const auto shape = [](const Chunk&) { return quadriga::FieldShape{256, 1, DType::float64}; };

  std::array<double, 256> total{};
  quadriga::Pipeline pipeline({.memory = "1MiB", .devices = "emulated:2,memory=4MiB"});
  pipeline
      .source([&](Chunk& chunk) {
        const quadriga::View bytes = chunk.add("bytes", block, 1, DType::bytes);
        const auto got = std::fread(bytes.data, 1, block, file.get());
        chunk.truncate("bytes", static_cast<std::int64_t>(got));  // the last block is shorter
        return got > 0;
      })
      .filter([](Chunk& chunk) { return chunk.number() != 3; }, "skip a block")
      .kernel(counting, {quadriga::reads("bytes"), quadriga::writes("counts", shape)})
      .serial_in_order(
          [&](Chunk& chunk) {  // one chunk at a time, so `total` needs no lock
            const auto counts = chunk.values<double>("counts");
            for (std::size_t i = 0; i < total.size(); ++i) total[i] += counts[i];
          },
          "add");
  const quadriga::PipelineStats stats = pipeline.run();

  double sum = 0;
  for (const double each : total) sum += each;
  std::printf("%.0f bytes in %llu blocks, %llu dropped; %s limits\n", sum,
              static_cast<unsigned long long>(stats.chunks),
              static_cast<unsigned long long>(stats.dropped), stats.limit.c_str());
  return sum == size - block ? 0 : 1;
}
