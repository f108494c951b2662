// SPDX-License-Identifier: BSD-3-Clause
// bench/messages.cpp: messages between two processes of this host, beside what cores allow.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "benchmarks.h"
#include "collective_rounds.h"
#include "line.h"
#include "message/communicator.h"
#include "message/join.h"
#include "message_rounds.h"

namespace quadriga::bench {
namespace {

using message::CommunicatorCore;
using message::ElementType;
using message::Layout;
using message::MessageBuffer;
using message::Patience;
using message::TransferPtr;

constexpr double longest = 120;  // Seconds a call: one of the two may have failed.

class OurPair : public MessagePair {
 public:
  OurPair(CommunicatorCore& communicator, bool is_first)
      : communicator_(communicator), is_first_(is_first) {}
  bool is_first() const override { return is_first_; }
  void use(std::byte* data, std::size_t bytes, int parts) override {
    parts_.clear();
    const Layout layout = Layout::contiguous(static_cast<std::int64_t>(bytes), ElementType::bytes);
    for (int part = 0; part < parts; ++part)
      parts_.push_back({layout, data + static_cast<std::size_t>(part) * bytes});
  }
  void send(int part) override {
    communicator_.send(parts_[static_cast<std::size_t>(part)], other(), 1, patience_);
  }
  void receive(int part) override {
    communicator_.receive(parts_[static_cast<std::size_t>(part)], other(), 1, patience_);
  }
  /// Of the path that so many bytes take; nothing where no rate is known.
  std::optional<double> predicted_seconds(std::size_t bytes) const {
    const MessageBuffer place{
        Layout::contiguous(static_cast<std::int64_t>(bytes), ElementType::bytes), parts_[0].data};
    for (const auto& each : communicator_.predict(place, other(), place))
      if (each.is_chosen) return each.seconds;
    return std::nullopt;
  }
  void send_all() override {
    std::vector<TransferPtr> all;
    for (const MessageBuffer& each : parts_)
      all.push_back(communicator_.start_send(each, other(), 1));
    wait(all);
  }
  void receive_all() override {
    std::vector<TransferPtr> all;
    for (const MessageBuffer& each : parts_)
      all.push_back(communicator_.start_receive(each, other(), 1));
    wait(all);
  }

 private:
  int other() const { return is_first_ ? 1 : 0; }
  void wait(const std::vector<TransferPtr>& all) {
    for (const TransferPtr& each : all) communicator_.endpoint().wait(each, patience_);
  }
  CommunicatorCore& communicator_;
  const bool is_first_;
  const Patience patience_{longest, {}};
  std::vector<MessageBuffer> parts_;
};

class OurCollectives : public CollectiveCalls {
 public:
  explicit OurCollectives(CommunicatorCore& communicator) : communicator_(communicator) {}
  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  void barrier() override { communicator_.barrier(patience_); }
  void call(std::string_view name, double* from, double* into, int count) override {
    const MessageBuffer sent = place(from, count);
    const MessageBuffer got = place(into, name == "allgather" ? count * size() : count);
    if (name == "bcast") communicator_.broadcast(sent, 0, patience_);
    if (name == "reduce") communicator_.reduce(sent, got, sum, 0, patience_);
    if (name == "allreduce") communicator_.all_reduce(sent, got, sum, patience_);
    if (name == "allgather") communicator_.all_gather(sent, got, patience_);
    if (name == "alltoall") communicator_.all_to_all(sent, got, patience_);
  }

 private:
  static constexpr auto sum = message::ReduceOperation::sum;
  static MessageBuffer place(double* data, int count) {
    return {Layout::contiguous(count, ElementType::float64), reinterpret_cast<std::byte*>(data)};
  }
  CommunicatorCore& communicator_;
  const Patience patience_{longest, {}};
};

// Two words in lines of their own, which both processes map.
struct Flags {
  alignas(64) std::atomic<std::uint32_t> there{0};
  alignas(64) std::atomic<std::uint32_t> back{0};
};

void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  for (int polls = 0; word.load(std::memory_order_acquire) != value; ++polls)
    if (polls > 10'000) sched_yield();  // There may be one core only.
}

// Seconds that a word takes from core to core: what no message can undercut.
double word_seconds(Flags& flags, bool is_first, int batches) {
  constexpr std::uint32_t rounds = 1000;
  std::vector<double> seconds;
  std::uint32_t value = 0;
  for (int batch = 0; batch <= batches; ++batch) {
    const double start = now();
    for (std::uint32_t i = 0; i < rounds; ++i) {
      ++value;
      if (is_first) flags.there.store(value, std::memory_order_release);
      wait_for(is_first ? flags.back : flags.there, value);
      if (!is_first) flags.back.store(value, std::memory_order_release);
    }
    if (batch > 0) seconds.push_back((now() - start) / rounds / 2);
  }
  return median(seconds);
}

// Seconds of a copy within one process, which a message of so many bytes takes at least.
double copy_seconds(std::size_t bytes, int batches) {
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
  const std::size_t rounds =
      std::clamp<std::size_t>((std::size_t{4} << 20) / (bytes + 64), 1, 10'000);
  std::vector<double> seconds;
  for (int batch = 0; batch <= batches; ++batch) {
    const double start = now();
    for (std::size_t i = 0; i < rounds; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    if (batch > 0) seconds.push_back((now() - start) / static_cast<double>(rounds));
  }
  return median(seconds);
}

struct Asked {
  bool rates = false;
  bool collectives = false;
  int batches = 0;
  std::vector<std::size_t> sizes, cores;
};

void print(const Asked& asked, std::size_t bytes, double found, double word, double copy,
           std::optional<double> predicted) {
  Line line(asked.rates ? "bandwidth" : "pingpong");
  line.add("bytes", static_cast<double>(bytes)).add("value", asked.rates ? found : found * 1e6);
  line.add("unit", asked.rates ? "bytes/s" : "us one way");
  line.add("bound", asked.rates ? static_cast<double>(bytes) / copy : (word + copy) * 1e6);
  if (predicted)
    line.add("predicted", asked.rates ? static_cast<double>(bytes) / *predicted : *predicted * 1e6);
  line.print();
}

void run_collectives(const Asked& asked, CommunicatorCore& communicator, double word) {
  OurCollectives calls(communicator);
  for (const std::size_t bytes : asked.sizes)
    for (const char* const name : collective_names) {
      const double found = collective_seconds(calls, name, bytes, asked.batches);
      if (communicator.rank() != 0) continue;
      Line line(name);
      line.add("bytes", static_cast<double>(bytes)).add("value", found * 1e6);
      line.add("unit", "us a call").add("bound", (word + copy_seconds(bytes, asked.batches)) * 1e6);
      line.print();
    }
  communicator.barrier({longest, {}});
}

void run(const Asked& asked, const message::Joining& joining, Flags& flags) {
  const bool is_first = joining.rank == 0;
  pin_to(asked.cores, is_first);
  const double word = word_seconds(flags, is_first, asked.batches);
  CommunicatorCore communicator(message::join(joining, {longest, {}}));
  if (asked.collectives) return run_collectives(asked, communicator, word);
  OurPair pair(communicator, is_first);
  for (const std::size_t bytes : asked.sizes) {
    MessageRounds rounds(pair, bytes, asked.batches);
    const double found = asked.rates ? rounds.rate() : rounds.one_way();
    const auto predicted = is_first ? pair.predicted_seconds(bytes) : std::nullopt;
    if (is_first) print(asked, bytes, found, word, copy_seconds(bytes, asked.batches), predicted);
    communicator.barrier({longest, {}});
  }
}

// What the second process says goes to standard error; nothing of the first one's is run there.
[[noreturn]] void run_second(const Asked& asked, const message::Joining& joining, Flags& flags) {
  int status = 1;
  try {
    run(asked, joining, flags);
    status = 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "quadriga-bench: {}\n", error.what());
  }
  _exit(status);
}

class Folder {
 public:
  Folder() {
    if (mkdtemp(name_) == nullptr) fail(Errc::unavailable, "can't make a folder in /tmp");
  }
  ~Folder() { rmdir(name_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string address() const { return fmt::format("file:{}/join", name_); }

 private:
  char name_[32] = "/tmp/quadriga-bench-XXXXXX";
};

Asked asked_by(const Settings& settings) {
  Asked asked;
  const std::string kind = settings.text("case", "pingpong");
  require(
      kind == "pingpong" || kind == "bandwidth" || kind == "collectives",
      fmt::format("messages: no case '{}'; there are pingpong, bandwidth and collectives", kind));
  asked.rates = kind == "bandwidth";
  asked.collectives = kind == "collectives";
  asked.batches = static_cast<int>(settings.integer("repeat", 15));
  try {
    asked.sizes = numbers_of(settings.text("sizes", "8,512,4096,32768,1048576,67108864"));
    asked.cores = numbers_of(settings.text("pin"));
  } catch (const std::logic_error&) {
    fail(Errc::invalid_argument, "messages: --sizes and --pin are numbers with commas between");
  }
  for (const std::size_t bytes : asked.sizes)
    require(bytes >= 1 && bytes <= std::size_t{1} << 32, "messages: a size is 1 byte to 4 GiB");
  require(asked.cores.empty() || asked.cores.size() == 2, "messages: --pin names two cores");
  return asked;
}

}  // namespace

void messages(const Settings& settings) {
  const Asked asked = asked_by(settings);
  void* const shared =
      mmap(nullptr, sizeof(Flags), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc();
  Flags& flags = *new (shared) Flags;
  const Folder folder;
  message::Joining joining{folder.address(), 0, 2, message::random_nonce()};
  const pid_t parent = getpid();
  // No thread of ours runs yet.
  const pid_t child = fork();
  if (child < 0) fail(Errc::unavailable, "can't start a second process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    joining.rank = 1;
    run_second(asked, joining, flags);
  }
  try {
    run(asked, joining, flags);
  } catch (...) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    throw;
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) fail(Errc::internal, "messages: the second process failed");
}

}  // namespace quadriga::bench
