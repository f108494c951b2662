// SPDX-License-Identifier: BSD-3-Clause
// bench/message_packing.cpp: packing and unpacking on one core, beside a memcpy of as many bytes.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <new>
#include <span>
#include <vector>

#include "base/random.h"
#include "benchmarks.h"
#include "line.h"
#include "message/pack/stream.h"

namespace quadriga::bench {
namespace {

using message::ElementType;
using message::Layout;
using Numbers = std::vector<std::int64_t>;

const Layout f64 = ElementType::float64;

struct Case {
  std::string name;
  Layout layout;
  double goal = 0;  // Of a memcpy's rate; 0: none is set.
};

// What this core took: others that run on a shared machine meanwhile don't count.
double core_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::int64_t root(double square) { return static_cast<std::int64_t>(std::sqrt(square)); }

// Runs of 48 bytes at places in twice the memory, in any order.
Layout random_runs(std::int64_t bytes, Random& random) {
  constexpr std::int64_t run = 48;
  std::vector<std::int64_t> places(static_cast<std::size_t>(bytes / run)),
      lengths(places.size(), 6);
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] =
        static_cast<std::int64_t>(i) * 2 * run + static_cast<std::int64_t>(random.below(6)) * 8;
    std::swap(places[i], places[random.below(i + 1)]);
  }
  return Layout::indexed_bytes(lengths, places, f64);
}

Case sub_matrix(std::int64_t bytes, std::int64_t ld, std::int64_t width, std::string name) {
  const std::int64_t rows = bytes / 8 / width;
  return {std::move(name), Layout::vector(rows, width, ld, f64), 0.9};
}

std::vector<Case> named_cases(std::int64_t bytes, Random& random) {
  const auto elements = static_cast<double>(bytes) / 8;
  const std::int64_t order = root(elements), triangle = root(2 * elements);
  std::vector<Case> cases;
  cases.push_back(sub_matrix(bytes, 2 * order, order, "sub-matrix"));
  cases.push_back(
      {"triangle", Layout::triangle({.order = triangle, .leading_dimension = triangle}, f64), 0.9});
  cases.push_back({"runs of 512 B", Layout::vector(bytes / 512, 64, 128, f64), 0.8});
  cases.push_back(
      {"transpose", Layout::view(Numbers{order, order}, Numbers{8, order * 8}, f64), 0.3});
  cases.push_back({"random runs of 48 B", random_runs(bytes, random), 0.15});
  return cases;
}

// Sizes and distances that nobody chose.
std::vector<Case> drawn_cases(std::int64_t bytes, Random& random, std::int64_t count) {
  std::vector<Case> cases;
  const auto order = static_cast<double>(root(static_cast<double>(bytes) / 8));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto width = static_cast<std::int64_t>(order * (0.3 + 1.4 * random.uniform()));
    const auto ld = width + 1 + static_cast<std::int64_t>(order * random.uniform());
    const auto short_run = 1 + static_cast<std::int64_t>(random.below(256));
    const auto step = short_run + 1 + static_cast<std::int64_t>(random.below(256));
    cases.push_back(sub_matrix(bytes, ld, width, fmt::format("sub-matrix {} of {}", width, ld)));
    cases.push_back({fmt::format("runs of {} B each {} B", 8 * short_run, 8 * step),
                     Layout::vector(bytes / 8 / short_run, short_run, step, f64), 0});
    const std::int64_t rows = bytes / 8 / width;
    cases.push_back({fmt::format("transpose {} x {}", width, rows),
                     Layout::view(Numbers{width, rows}, Numbers{8, ld * 8}, f64), 0.3});
    const auto side =
        static_cast<std::int64_t>(std::sqrt(2.0) * order * (0.5 + 0.5 * random.uniform()));
    const auto half = random.chance(0.5) ? message::Half::upper : message::Half::lower;
    cases.push_back(
        {fmt::format("triangle {} of {}", side, side + width),
         Layout::triangle({.order = side, .leading_dimension = side + width, .half = half}, f64),
         0.9});
  }
  return cases;
}

// As NumPy has its large arrays: in huge pages where the system allows them, after malloc's header.
template <class T>
class Array {
 public:
  explicit Array(std::size_t count)
      : bytes_(count * sizeof(T) + header),
        pages_(static_cast<std::byte*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        content_(reinterpret_cast<T*>(pages_ + header), count) {
    if (pages_ == MAP_FAILED) throw std::bad_alloc();
    madvise(pages_, bytes_, MADV_HUGEPAGE);
    std::memset(pages_, 1, bytes_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { munmap(pages_, bytes_); }
  T* data() { return content_.data(); }
  std::size_t size() const { return content_.size(); }
  T& operator[](std::size_t i) { return content_[i]; }

 private:
  static constexpr std::size_t header = 16;
  std::size_t bytes_;
  std::byte* pages_;
  std::span<T> content_;
};

// What a message is packed from, and packed bytes beside it.
struct Buffers {
  explicit Buffers(const Layout& layout)
      : memory(static_cast<std::size_t>((layout.bounds().second - layout.bounds().first + 7) / 8)),
        packed(static_cast<std::size_t>(layout.bytes())),
        copied(packed.size()) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = mix(i);
  }
  std::byte* data(const Layout& layout) {
    return reinterpret_cast<std::byte*>(memory.data()) - layout.bounds().first;
  }
  Array<std::uint64_t> memory;
  Array<std::byte> packed;
  Array<std::byte> copied;
};

// The packed bytes must be those of a plain walk over the runs, and go back to where they were.
void check(const Layout& layout, Buffers& buffers) {
  std::byte* const data = buffers.data(layout);
  std::size_t at = 0;
  for (const message::ByteRun& run : runs_of(layout.form())) {
    const auto bytes = static_cast<std::size_t>(run.bytes);
    if (std::memcmp(buffers.packed.data() + at, data + run.offset, bytes) != 0)
      fail(Errc::internal, fmt::format("packed bytes {} to {} are wrong", at, at + bytes));
    std::memset(data + run.offset, 0, bytes);
    at += bytes;
  }
  message::Unpacker(layout, data).unpack(0, {buffers.packed.data(), buffers.packed.size()});
  for (std::size_t i = 0; i < buffers.memory.size(); ++i) {
    if (buffers.memory[i] != mix(i)) fail(Errc::internal, fmt::format("element {} is wrong", i));
  }
}

struct Ratios {
  std::vector<double> pack, unpack, memcpy_seconds;
};

Ratios measured(const Layout& layout, Buffers& buffers, long long repeat, std::size_t segment) {
  const message::Packer packer(layout, buffers.data(layout));
  const message::Unpacker unpacker(layout, buffers.data(layout));
  const std::span<std::byte> packed(buffers.packed.data(), buffers.packed.size());
  Ratios ratios;
  for (long long round = 0; round <= repeat; ++round) {
    const double begin = core_seconds();
    std::memcpy(buffers.copied.data(), packed.data(), packed.size());
    const double copied = core_seconds();
    for (std::size_t at = 0; at < packed.size(); at += segment)
      packer.pack(at, packed.subspan(at, std::min(segment, packed.size() - at)));
    const double done = core_seconds();
    for (std::size_t at = 0; at < packed.size(); at += segment)
      unpacker.unpack(at, packed.subspan(at, std::min(segment, packed.size() - at)));
    const double back = core_seconds();
    if (round == 0) continue;  // It touches pages and caches for the first time.
    ratios.pack.push_back((copied - begin) / (done - copied));
    ratios.unpack.push_back((copied - begin) / (back - done));
    ratios.memcpy_seconds.push_back(copied - begin);
  }
  return ratios;
}

void run(const Case& each, long long repeat, std::size_t segment) {
  Buffers buffers(each.layout);
  const Ratios ratios = measured(each.layout, buffers, repeat, segment);
  check(each.layout, buffers);
  const double bytes = static_cast<double>(each.layout.bytes());
  Line(each.name)
      .add("form", each.layout.text())
      .add("bytes", bytes)
      .add("memcpy_bytes_per_second", bytes / median(ratios.memcpy_seconds))
      .add("pack_of_memcpy", median(ratios.pack))
      .add("unpack_of_memcpy", median(ratios.unpack))
      .add("least", std::ranges::min(ratios.pack))
      .add("most", std::ranges::max(ratios.pack))
      .add("goal", each.goal)
      .print();
}

}  // namespace

void message_packing(const Settings& settings) {
  const long long bytes = settings.integer("bytes", 256 << 20, 4096);
  const long long repeat = settings.integer("repeat", 5);
  const long long drawn = settings.integer("drawn", 0, 0);
  const auto segment = static_cast<std::size_t>(settings.integer("segment", INT64_MAX));
  const std::string only = settings.text("only");
  Random random(static_cast<std::uint64_t>(settings.integer("seed", 1)));
  const std::vector<Case> cases =
      drawn ? drawn_cases(bytes, random, drawn) : named_cases(bytes, random);
  for (const Case& each : cases) {
    if (each.name.find(only) != std::string::npos) run(each, repeat, segment);
  }
}

}  // namespace quadriga::bench
