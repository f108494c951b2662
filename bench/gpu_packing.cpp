// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_packing.cpp: packing and unpacking on one GPU, beside cudaMemcpyAsync of as many bytes,
// a bare gather of the same granules, a copy a block, and cudaMemcpy2DAsync.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "base/random.h"
#include "gpu_buffer.h"
#include "gpu_gather.h"
#include "gpu_packing.h"
#include "message/pack/device_packer.h"
#include "message/pack/stream.h"

namespace quadriga::bench {
namespace {

using cuda::check;
using message::DevicePacker;
using message::ElementType;
using message::Layout;
using message::PackPart;
using message::PackQueue;
using Numbers = std::vector<std::int64_t>;

const Layout f64 = ElementType::float64;

/// Runs that a bare gather moves too: at places, or `step` bytes apart.
struct Granules {
  int run = 0;
  std::int64_t step = 0;
  std::vector<std::uint32_t> places;  ///< In 8 bytes.
};

struct Case {
  std::string name;
  Layout layout;
  double goal = 0;              ///< Of the reference's rate: the gather if there is one.
  std::int64_t rows_bytes = 0;  ///< Rows that cudaMemcpy2DAsync copies, and their distance.
  std::int64_t rows_step = 0;
  std::optional<Granules> granules;
};

std::int64_t root(double square) { return static_cast<std::int64_t>(std::sqrt(square)); }

Case rows(std::string name, std::int64_t bytes, std::int64_t width, std::int64_t step,
          double goal) {
  const std::int64_t count = bytes / width;
  return {
      std::move(name), Layout::vector_bytes(count, width / 8, step, f64), goal, width, step, {}};
}

// Runs at places in twice the memory, in any order.
Case random_runs(std::int64_t bytes, int run, Random& random) {
  Granules granules{run, 0, {}};
  granules.places.resize(static_cast<std::size_t>(bytes / run));
  const auto words = static_cast<std::uint64_t>(run) / 8;
  for (std::size_t i = 0; i < granules.places.size(); ++i) {
    granules.places[i] = static_cast<std::uint32_t>(i * 2 * words + random.below(words + 1));
    std::swap(granules.places[i], granules.places[random.below(i + 1)]);
  }
  Numbers lengths(granules.places.size(), run / 8), places(granules.places.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = 8 * std::int64_t{granules.places[i]};
  return {fmt::format("random runs of {} B", run),
          Layout::indexed_bytes(lengths, places, f64),
          0.85,
          0,
          0,
          std::move(granules)};
}

// Lengths of 8 to 88 bytes, in order.
Case uneven_runs(std::int64_t bytes, Random& random) {
  Numbers lengths, places;
  for (std::int64_t at = 0, packed = 0; packed < bytes;) {
    lengths.push_back(1 + static_cast<std::int64_t>(random.below(11)));
    places.push_back(at);
    packed += 8 * lengths.back();
    at += 8 * (lengths.back() + 1 + static_cast<std::int64_t>(random.below(8)));
  }
  return {"uneven runs", Layout::indexed_bytes(lengths, places, f64), 0, 0, 0, {}};
}

Layout transposed(std::int64_t columns, std::int64_t rows, std::int64_t ld) {
  return Layout::view(Numbers{columns, rows}, Numbers{8, ld * 8}, f64);
}

Layout triangle(std::int64_t order, std::int64_t ld, message::Half half) {
  return Layout::triangle({.order = order, .leading_dimension = ld, .half = half}, f64);
}

std::vector<std::function<Case()>> cases_of(std::int64_t bytes, Random& random) {
  const std::int64_t order = root(static_cast<double>(bytes) / 8) / 8 * 8;
  const std::int64_t half = root(static_cast<double>(bytes) / 4);
  const auto strided = [bytes](int run, std::int64_t step, double goal) {
    Case result = rows(fmt::format("runs of {} B each {} B", run, step), bytes, run, step, goal);
    if (run == 8) result.granules = Granules{run, step, {}};
    return result;
  };
  return {
      [=] { return Case{"contiguous", Layout::contiguous(bytes / 8, f64), 0, 0, 0, {}}; },
      [=] { return rows("sub-matrix", bytes, 8 * order, 16 * order, 0.97); },
      [=] { return rows("sub-matrix, odd", bytes, 8 * (order + 1), 8 * (2 * order + 1), 0.97); },
      [=] { return Case{"triangle", triangle(half, half, message::Half::lower), 0.95, 0, 0, {}}; },
      [=] {
        return Case{"triangle, upper, odd",
                    triangle(half - 3, half + 2, message::Half::upper),
                    0.95,
                    0,
                    0,
                    {}};
      },
      [=] { return strided(64, 128, 0.9); },
      [=] { return Case{"transpose", transposed(order, order, order), 0.85, 0, 0, {}}; },
      [=] {
        return Case{
            "transpose, odd", transposed(order / 2 + 3, 2 * order + 1, order), 0.85, 0, 0, {}};
      },
      [=] { return strided(8, 16, 0.85); },
      [=] { return strided(8, 80, 0.85); },
      [=] { return strided(512, 1024, 0); },
      [=, &random] { return random_runs(bytes, 8, random); },
      [=, &random] { return random_runs(bytes, 48, random); },
      [=, &random] { return uneven_runs(bytes, random); },
      [=] {
        return Case{"bytes at odd places",
                    Layout::vector(bytes / 4099, 4099, 8191, ElementType::uint8),
                    0,
                    0,
                    0,
                    {}};
      }};
}

/// Times of operations on one stream, which take turns round by round.
class Rounds {
 public:
  Rounds() {
    check(cudaEventCreate(&begin_), "an event");
    check(cudaEventCreate(&end_), "an event");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  }
  ~Rounds() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  cudaStream_t stream() const { return stream_; }

  std::size_t add(std::function<void()> work) {
    works_.push_back({std::move(work), {}});
    return works_.size() - 1;
  }
  void run(long long repeat) {
    constexpr int at_once = 4;  // So that beginning counts less.
    for (long long round = 0; round <= repeat; ++round) {
      for (Work& work : works_) {
        check(cudaEventRecord(begin_, stream_), "an event");
        for (int i = 0; i < at_once; ++i) work.run();
        check(cudaEventRecord(end_, stream_), "an event");
        check(cudaEventSynchronize(end_), "the work");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin_, end_), "a time");
        if (round > 0) work.seconds.push_back(milliseconds * 1e-3 / at_once);
      }
    }
  }
  double seconds(std::size_t work) const { return median(works_[work].seconds); }

 private:
  struct Work {
    std::function<void()> run;
    std::vector<double> seconds;
  };
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::vector<Work> works_;
};

std::vector<std::byte> on_host(const void* from, std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  check(cudaMemcpy(result.data(), from, bytes, cudaMemcpyDefault), "copying home");
  return result;
}

// Packed on the device as on the host, and back where it was.
bool is_right(DevicePacker& packer, const PackPart& part, std::byte* memory, std::size_t span) {
  const auto bytes = static_cast<std::size_t>(part.layout.bytes());
  const std::vector<std::byte> before = on_host(memory, span);
  std::vector<std::byte> expected(bytes);
  const auto low = part.layout.bounds().first;
  message::Packer(part.layout, before.data() - low).pack(0, expected);
  check(cudaMemset(part.packed, 0x5a, bytes), "clearing");
  packer.pack(part);
  if (on_host(part.packed, bytes) != expected) return false;
  check(cudaMemset(memory, 0x5a, span), "clearing");
  packer.unpack(part);
  const std::vector<std::byte> after = on_host(memory, span);
  std::vector<std::byte> again(bytes), cleared(span, std::byte{0x5a});
  message::Packer(part.layout, after.data() - low).pack(0, again);
  message::Unpacker(part.layout, cleared.data() - low).unpack(0, expected);
  check(cudaMemcpy(memory, before.data(), span, cudaMemcpyDefault), "copying back");
  return again == expected && after == cleared;
}

// A copy for each of the first blocks: seconds for all at that rate.
double copy_a_block(const Case& each, std::byte* data, std::byte* packed, cudaStream_t stream) {
  constexpr std::int64_t most = 4000;
  const message::Canonical& form = each.layout.form();
  const std::int64_t blocks = std::min(form.runs(), most);
  std::vector<message::ByteRun> runs;
  if (form.leaf == message::Leaf::run && form.strides.size() == 1)
    for (std::int64_t i = 0; i < blocks; ++i)
      runs.push_back({form.origin + i * form.strides[0].bytes, form.block_bytes});
  else if (form.strides.empty())
    for (std::int64_t i = 0; i < blocks; ++i)
      runs.push_back({form.origin + form.run(i).offset, form.run(i).bytes});
  else
    return 0;
  const double begin = now();
  for (const message::ByteRun& run : runs)
    check(cudaMemcpyAsync(packed, data + run.offset, static_cast<std::size_t>(run.bytes),
                          cudaMemcpyDefault, stream),
          "a block");
  check(cudaStreamSynchronize(stream), "the blocks");
  return (now() - begin) * static_cast<double>(form.runs()) / static_cast<double>(blocks);
}

void run_case(const Case& each, const Settings& settings) {
  const auto bytes = static_cast<std::size_t>(each.layout.bytes());
  const auto [low, high] = each.layout.bounds();
  const auto span = static_cast<std::size_t>(high - low);
  const DeviceBuffer memory(span), packed(bytes), copied(bytes);
  auto* const base = static_cast<std::byte*>(memory.data());
  std::byte* const data = base - low;
  fill_random_words(base, span, 1);
  fill_random_words(packed.data(), bytes, 2);
  check(cudaDeviceSynchronize(), "random bits");
  const std::unique_ptr<DevicePacker> packer = DevicePacker::on_cuda(0, std::size_t{1} << 30);
  Rounds rounds;
  const PackPart part{each.layout, data, packed.data()};
  const PackQueue queue{rounds.stream(), 0};
  const PackQueue few{rounds.stream(), static_cast<int>(settings.integer("processors", 24))};

  const auto host_seconds = [&] {
    const double begin = now();
    packer->pack(part, queue);
    check(cudaStreamSynchronize(rounds.stream()), "packing");
    return now() - begin;
  };
  const double first = host_seconds();
  std::vector<double> later;
  for (int i = 0; i < 9; ++i) later.push_back(host_seconds());

  const auto copy = rounds.add([&] {
    check(cudaMemcpyAsync(copied.data(), packed.data(), bytes, cudaMemcpyDefault, rounds.stream()),
          "a copy");
  });
  const auto pack = rounds.add([&] { packer->pack(part, queue); });
  const auto unpack = rounds.add([&] { packer->unpack(part, queue); });
  const auto pack_few = rounds.add([&] { packer->pack(part, few); });
  std::optional<std::size_t> gathers, scatters, rows, sum;
  std::optional<DeviceBuffer> places;
  if (each.granules) {
    const Granules& granules = *each.granules;
    if (!granules.places.empty()) {
      places.emplace(granules.places.size() * sizeof(std::uint32_t));
      check(cudaMemcpy(places->data(), granules.places.data(), granules.places.size() * 4,
                       cudaMemcpyDefault),
            "places");
    }
    const auto* const table = places ? static_cast<const std::uint32_t*>(places->data()) : nullptr;
    // Its places count from `data`, as the layout's.
    const auto runs = static_cast<std::int64_t>(bytes) / granules.run;
    gathers = rounds.add([&, table, runs] {
      gather(rounds.stream(), data, table, granules.step, granules.run, runs, packed.data());
    });
    scatters = rounds.add([&, table, runs] {
      scatter(rounds.stream(), data, table, granules.step, granules.run, runs, packed.data());
    });
  }
  if (each.rows_bytes != 0)
    rows = rounds.add([&] {
      const auto width = static_cast<std::size_t>(each.rows_bytes);
      check(cudaMemcpy2DAsync(packed.data(), width, data, static_cast<std::size_t>(each.rows_step),
                              width, bytes / width, cudaMemcpyDefault, rounds.stream()),
            "rows");
    });
  if (each.layout.elements().type() == ElementType::float64)
    sum = rounds.add([&] { packer->unpack_reduce(part, message::ReduceOperation::max, queue); });
  rounds.run(settings.integer("repeat", 9));

  const double copy_seconds = rounds.seconds(copy);
  const double reference = gathers ? rounds.seconds(*gathers) : copy_seconds;
  const double back = scatters ? rounds.seconds(*scatters) : copy_seconds;
  Line line("pack");
  line.add("layout", each.name)
      .add("bytes", static_cast<double>(bytes))
      .add("copy_bytes_a_second", static_cast<double>(bytes) / copy_seconds)
      .add("reference", gathers ? "bare gather" : "cudaMemcpyAsync")
      .add("pack", reference / rounds.seconds(pack))
      .add("unpack", back / rounds.seconds(unpack))
      .add("goal", each.goal)
      .add("pack_of_copy", copy_seconds / rounds.seconds(pack))
      .add("unpack_of_copy", copy_seconds / rounds.seconds(unpack))
      .add("few_processors", few.most_processors)
      .add("pack_few_bytes_a_second", static_cast<double>(bytes) / rounds.seconds(pack_few))
      .add("table_bytes", static_cast<double>(packer->counters().table_bytes))
      .add("first_use", first / median(later))
      .add("first_seconds", first);
  if (sum) line.add("unpack_max_of_copy", copy_seconds / rounds.seconds(*sum));
  if (rows) line.add("copy_2d_of_copy", copy_seconds / rounds.seconds(*rows));
  const double blocks =
      copy_a_block(each, data, static_cast<std::byte*>(packed.data()), rounds.stream());
  if (blocks > 0) line.add("copy_a_block_of_copy", copy_seconds / blocks);
  fill_random_words(base, span, 3);
  check(cudaDeviceSynchronize(), "random bits");
  if (settings.integer("check", 1, 0) != 0)
    line.add("right", is_right(*packer, part, base, span) ? 1 : 0);
  line.print();
}

}  // namespace

void pack_rates(const Settings& settings) {
  Random random(static_cast<std::uint64_t>(settings.integer("seed", 1)));
  const std::int64_t bytes = settings.integer("bytes", 256000000);
  const std::string only = settings.text("only", "");
  {  // Loads all kernels that are used below.
    Random small(2);
    for (const auto& make : cases_of(100000, small)) {
      const Case each = make();
      const auto [low, high] = each.layout.bounds();
      const DeviceBuffer memory(static_cast<std::size_t>(high - low)),
          packed(static_cast<std::size_t>(each.layout.bytes()));
      DevicePacker::on_cuda(0)->pack(
          {each.layout, static_cast<std::byte*>(memory.data()) - low, packed.data()});
      check(cudaDeviceSynchronize(), "packing");
    }
  }
  for (const auto& make : cases_of(bytes, random)) {
    const Case each = make();
    if (each.name.find(only) != std::string::npos) run_case(each, settings);
  }
}

}  // namespace quadriga::bench
