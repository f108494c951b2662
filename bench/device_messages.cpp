// SPDX-License-Identifier: BSD-3-Clause
// bench/device_messages.cpp: messages between memory of devices of two processes, beside a copy
// within one, and beside opening the memory. Each process takes a GPU of its own if there are two.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include "benchmarks.h"
#include "line.h"
#include "message/communicator.h"
#include "message/device_moves.h"
#include "message/join.h"
#include "message/ports.h"
#include "message_rounds.h"

namespace quadriga::bench {
namespace {

using message::CommunicatorCore;
using message::DevicePort;
using message::ElementType;
using message::Layout;
using message::MessageBuffer;
using message::Patience;

const Patience patient{120, {}};

struct Asked {
  std::string devices;
  std::vector<std::size_t> sizes;
  int batches = 0;
};

// Elements of a device of this side, enough for any layout of a case.
class Buffer {
 public:
  Buffer(std::shared_ptr<DevicePort> port, DeviceId device, std::size_t bytes)
      : port_(std::move(port)), device_(device), memory_(port_->memory().allocate(device, bytes)) {
    if (!memory_) fail(Errc::unavailable, fmt::format("device {} has no {} bytes", device, bytes));
  }
  ~Buffer() { port_->memory().deallocate(device_, memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  MessageBuffer place(const Layout& layout) const { return {layout, memory_, port_, device_}; }
  std::byte* memory() const { return memory_; }

 private:
  std::shared_ptr<DevicePort> port_;
  DeviceId device_;
  std::byte* memory_;
};

// What is sent and as what it is received: `order` rows of as many doubles, or half of them.
struct Shape {
  std::string name;
  Layout sent, received;
};

std::vector<Shape> shapes_of(std::size_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes / sizeof(double));
  const Layout flat = Layout::contiguous(count, ElementType::float64);
  std::int64_t n = 1;
  while ((n + 1) * (n + 1) <= count) ++n;
  std::int64_t half = 1;
  while ((half + 1) * (half + 2) / 2 <= count) ++half;
  const std::int64_t d = sizeof(double);
  const Layout part = Layout::vector(n, n, 2 * n, ElementType::float64);
  const Layout triangle = Layout::triangle({half, half}, ElementType::float64);
  const std::vector<std::int64_t> square{n, n}, turned{d, n * d};
  return {{"contiguous", flat, flat},
          {"submatrix", part, part},
          {"triangle", triangle, triangle},
          {"transpose", Layout::contiguous(n * n, ElementType::float64),
           Layout::view(square, turned, ElementType::float64)}};
}

class Side {
 public:
  Side(const Asked& asked, const message::Joining& joining)
      : asked_(asked),
        communicator_(message::join(joining, patient)),
        gpus_(asked.devices == "cuda" ? static_cast<int>(Machine::parse("cuda").devices.size())
                                      : 0),
        port_(gpus_ > 0 ? message::ports::cuda(joining.rank % gpus_)
                        : message::ports::open(Machine::parse(asked.devices))),
        device_(static_cast<DeviceId>(joining.rank %
                                      static_cast<int>(port_->machine().devices.size()))) {}

  void run() {
    for (const std::size_t bytes : asked_.sizes) {
      latency(bytes);
      posted(bytes);
      if (bytes < large) continue;
      first_messages(bytes);
      for (const Shape& shape : shapes_of(bytes)) {
        try {
          one_way(shape);
        } catch (const Error& error) {
          if (is_first()) fmt::print(stderr, "{}: {}\n", shape.name, error.what());
          break;
        }
      }
    }
    communicator_.barrier(patient);
  }

 private:
  static constexpr std::size_t large = std::size_t{1} << 20;
  bool is_first() const { return communicator_.rank() == 0; }
  int other() const { return 1 - communicator_.rank(); }

  void latency(std::size_t bytes) {
    const Layout layout = Layout::contiguous(static_cast<std::int64_t>(bytes), ElementType::bytes);
    const Buffer buffer(port_, device_, bytes);
    const MessageBuffer place = buffer.place(layout);
    const int rounds = bytes < large ? 200 : 5;
    std::vector<double> seconds;
    for (int batch = 0; batch <= asked_.batches; ++batch) {
      const double start = now();
      for (int i = 0; i < rounds; ++i) {
        if (is_first()) communicator_.send(place, other(), 1, patient);
        communicator_.receive(place, other(), 1, patient);
        if (!is_first()) communicator_.send(place, other(), 1, patient);
      }
      if (batch > 0) seconds.push_back((now() - start) / rounds / 2);
    }
    print("pingpong", bytes, median(seconds) * 1e6, "us one way", copy_seconds(bytes) * 1e6,
          predicted_microseconds(place));
  }

  // Of a message whose receive was posted before; only the receiver's process uses its device.
  void posted(std::size_t bytes) {
    const Layout layout = Layout::contiguous(static_cast<std::int64_t>(bytes), ElementType::bytes);
    const Buffer buffer(port_, device_, bytes);
    std::vector<double> seconds;
    for (int i = 0; i < 10 * asked_.batches; ++i)
      seconds.push_back(seconds_of(buffer.place(layout)));
    print("posted", bytes, median(seconds) * 1e6, "us one way", copy_seconds(bytes) * 1e6,
          predicted_microseconds(buffer.place(layout)));
  }

  // Of a copy from one of this process's buffers to another; emulated ones, to the other device;
  // between two GPUs, from the first one's memory, which the second one's process has opened.
  double copy_seconds(std::size_t bytes) {
    if (gpus_ > 1) return peer_copy_seconds(bytes);
    // One process at a time uses the device.
    communicator_.barrier(patient);
    const double taken = is_first() ? own_copy_seconds(bytes) : 0;
    communicator_.barrier(patient);
    return taken;
  }
  double own_copy_seconds(std::size_t bytes) {
    const auto count = static_cast<DeviceId>(port_->machine().devices.size());
    const Buffer from(port_, static_cast<DeviceId>((device_ + 1) % count), bytes);
    const Buffer into(port_, device_, bytes);
    const SpaceId there = port_->space(static_cast<DeviceId>((device_ + 1) % count));
    return seconds_of_copies({there, port_->space(device_), from.memory(), into.memory(), bytes});
  }
  double peer_copy_seconds(std::size_t bytes) {
    const Buffer own(port_, device_, bytes);
    MemoryHandle handle = port_->memory().export_memory(device_, own.memory()).handle;
    double taken = 0;
    if (is_first()) {
      communicator_.send(bytes_at(&handle, sizeof handle), 1, 5, patient);
      communicator_.receive(bytes_at(&taken, sizeof taken), 1, 5, patient);
      return taken;
    }
    communicator_.receive(bytes_at(&handle, sizeof handle), 0, 5, patient);
    std::byte* const there = port_->memory().import_memory(device_, handle, -1);
    const SpaceId space = port_->space(device_);
    taken = seconds_of_copies({space, space, there, own.memory(), bytes});
    port_->memory().close_memory(device_, there);
    communicator_.send(bytes_at(&taken, sizeof taken), 0, 5, patient);
    return taken;
  }
  static MessageBuffer bytes_at(void* data, std::size_t bytes) {
    return {Layout::contiguous(static_cast<std::int64_t>(bytes), ElementType::bytes),
            static_cast<std::byte*>(data)};
  }
  double seconds_of_copies(const Copy& each) {
    const auto copy = [&] {
      const double start = now();
      const auto ticket = port_->operations().copy(device_, message::PortLane::across, each);
      while (!port_->operations().has_ended(ticket)) std::this_thread::yield();
      return now() - start;
    };
    std::vector<double> seconds;
    for (int i = 0; i <= asked_.batches; ++i)
      if (const double took = copy(); i > 0) seconds.push_back(took);
    return median(seconds);
  }

  // Bytes a second to a receive that was posted before.
  void one_way(const Shape& shape) {
    const auto bytes = static_cast<std::size_t>(shape.sent.bytes());
    const Layout& layout = is_first() ? shape.sent : shape.received;
    const Buffer buffer(port_, device_, static_cast<std::size_t>(layout.bounds().second));
    std::vector<double> rates;
    for (int batch = 0; batch <= asked_.batches; ++batch) {
      const message::TransferPtr arriving =
          is_first() ? nullptr : communicator_.start_receive(buffer.place(layout), 0, 2);
      communicator_.barrier(patient);
      const double start = now();
      if (is_first())
        communicator_.send(buffer.place(layout), 1, 2, patient);
      else
        communicator_.endpoint().wait(arriving, patient);
      if (batch > 0) rates.push_back(static_cast<double>(bytes) / (now() - start));
    }
    const std::optional<double> predicted = predicted_seconds(buffer.place(layout));
    const auto whole = static_cast<double>(bytes);
    print(shape.name, bytes, median(rates), "bytes/s", whole / copy_seconds(bytes),
          predicted ? std::optional(whole / *predicted) : predicted);
  }

  // Of a new allocation, and of one that was seen; beside opening another one of that size.
  void first_messages(std::size_t bytes) {
    const Layout layout = Layout::contiguous(static_cast<std::int64_t>(bytes), ElementType::bytes);
    std::vector<double> exports, opens, only_opens, firsts, seconds;
    const std::uint64_t before = opened();
    for (int round = 0; round < 5; ++round) {
      const Buffer given(port_, device_, bytes), sent(port_, device_, bytes);
      const double begin = now();
      MemoryHandle handle = port_->memory().export_memory(device_, given.memory()).handle;
      exports.push_back(now() - begin);
      const MessageBuffer told = bytes_at(&handle, sizeof handle);
      is_first() ? communicator_.send(told, 1, 3, patient)
                 : static_cast<void>(communicator_.receive(told, 0, 3, patient));
      const double start = now();
      if (!is_first() && handle.descriptor < 0) {
        std::byte* const mapped = port_->memory().import_memory(device_, handle, -1);
        only_opens.push_back(now() - start);
        port_->memory().close_memory(device_, mapped);
      }
      opens.push_back(now() - start);
      firsts.push_back(seconds_of(sent.place(layout)));
      seconds.push_back(seconds_of(sent.place(layout)));
    }
    const double counted = static_cast<double>(opened() - before);
    const double copy = copy_seconds(bytes) * 1e6;
    double copied = copy;
    const MessageBuffer told = bytes_at(&copied, sizeof copied);
    is_first() ? communicator_.send(told, 1, 3, patient)
               : static_cast<void>(communicator_.receive(told, 0, 3, patient));
    if (is_first()) return communicator_.barrier(patient);
    // Of the first one's parts, alone: both ranks export memory of that size.
    Line line = line_of("first", bytes, median(firsts) * 1e6, "us", median(opens) * 1e6);
    line.add("export", median(exports) * 1e6);
    if (!only_opens.empty()) line.add("open_alone", median(only_opens) * 1e6);
    line.print();
    print_all("second", bytes, median(seconds) * 1e6, "us", copied);
    print_all("opened", bytes, counted, "allocations of 5, 10 messages", 5);
    communicator_.barrier(patient);
  }
  double seconds_of(const MessageBuffer& place) {
    const message::TransferPtr arriving =
        is_first() ? nullptr : communicator_.start_receive(place, 0, 4);
    communicator_.barrier(patient);
    const double start = now();
    if (is_first())
      communicator_.send(place, 1, 4, patient);
    else
      communicator_.endpoint().wait(arriving, patient);
    return now() - start;
  }
  std::uint64_t opened() { return communicator_.endpoint().pair(other()).opened; }

  // To the other side's device; nothing where no link between the two is stated, as between GPUs.
  std::optional<double> predicted_seconds(const MessageBuffer& from) const {
    MessageBuffer into = from;
    const auto count = static_cast<int>(port_->machine().devices.size());
    into.device = static_cast<DeviceId>(other() % count);
    for (const auto& each : communicator_.predict(from, other(), into))
      if (each.is_chosen) return each.seconds;
    return std::nullopt;
  }
  std::optional<double> predicted_microseconds(const MessageBuffer& from) const {
    const std::optional<double> seconds = predicted_seconds(from);
    return seconds ? std::optional(*seconds * 1e6) : seconds;
  }

  void print(const std::string& name, std::size_t bytes, double value, const char* unit,
             double bound, std::optional<double> predicted = {}) {
    if (is_first()) print_all(name, bytes, value, unit, bound, predicted);
    communicator_.barrier(patient);
  }
  void print_all(const std::string& name, std::size_t bytes, double value, const char* unit,
                 double bound, std::optional<double> predicted = {}) {
    Line line = line_of(name, bytes, value, unit, bound);
    if (predicted) line.add("predicted", *predicted);
    line.print();
    std::fflush(stdout);
  }
  static Line line_of(const std::string& name, std::size_t bytes, double value, const char* unit,
                      double bound) {
    Line line(name);
    line.add("bytes", static_cast<double>(bytes)).add("value", value);
    line.add("unit", unit).add("bound", bound);
    return line;
  }

  const Asked& asked_;
  CommunicatorCore communicator_;
  int gpus_;  ///< Of this machine; 0: emulated devices are used.
  std::shared_ptr<DevicePort> port_;
  DeviceId device_;
};

}  // namespace

void device_messages(const Settings& settings) {
  Asked asked;
  asked.devices = settings.text("devices", "emulated:2,memory=600MiB,peer=2GB/s");
  asked.sizes = numbers_of(settings.text("sizes", "8,4096,67108864"));
  asked.batches = static_cast<int>(settings.integer("repeat", 9));
  char folder[] = "/tmp/quadriga-bench-XXXXXX";
  if (mkdtemp(folder) == nullptr) fail(Errc::unavailable, "can't make a folder in /tmp");
  message::Joining joining{fmt::format("file:{}/join", folder), 0, 2, message::random_nonce()};
  const pid_t parent = getpid();
  // No thread of ours, and nothing of a device, is there yet.
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    joining.rank = 1;
    try {
      Side(asked, joining).run();
      _exit(0);
    } catch (const std::exception& error) {
      fmt::print(stderr, "quadriga-bench: {}\n", error.what());
      _exit(1);
    }
  }
  try {
    Side(asked, joining).run();
  } catch (...) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    rmdir(folder);
    throw;
  }
  int status = 0;
  waitpid(child, &status, 0);
  rmdir(folder);
  if (status != 0) fail(Errc::internal, "device-messages: the second process failed");
}

}  // namespace quadriga::bench
