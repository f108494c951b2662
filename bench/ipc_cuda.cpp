// SPDX-License-Identifier: BSD-3-Clause
// bench/ipc_cuda.cpp: another process opens memory of this one, by CUDA's handles, and copies it.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <quadriga/error.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "base/units.h"
#include "benchmarks.h"
#include "copy_flows.h"
#include "device/cuda/copies.h"
#include "device/cuda/cuda_check.h"
#include "gpu_buffer.h"

extern char** environ;

namespace quadriga::bench {
namespace {

using cuda::check;

constexpr int tries = 10;

std::string to_hex(const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char byte : handle.reserved)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

cudaIpcMemHandle_t from_hex(std::string_view text) {
  cudaIpcMemHandle_t handle{};
  require(text.size() == 2 * sizeof(handle.reserved),
          fmt::format("a handle has {} digits, not {}", 2 * sizeof(handle.reserved), text.size()));
  for (std::size_t i = 0; i < sizeof(handle.reserved); ++i) {
    handle.reserved[i] =
        static_cast<char>(std::stoi(std::string(text.substr(2 * i, 2)), nullptr, 16));
  }
  return handle;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ","));
}

// Runs this program with other words; gives what it wrote. Errors: unavailable if it failed.
std::string run_self(std::vector<std::string> words) {
  int ends[2];
  require(::pipe(ends) == 0, "no pipe could be made");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> some;
  for (ssize_t count = 0; error == 0 && (count = ::read(ends[0], some.data(), some.size())) > 0;)
    said.append(some.data(), static_cast<std::size_t>(count));
  ::close(ends[0]);
  int status = 0;
  const bool ended = error == 0 && ::waitpid(child, &status, 0) == child && status == 0;
  if (!ended) fail(Errc::unavailable, "the other process couldn't open this one's memory");
  return said;
}

void say(const char* what, int from, int to, std::size_t bytes, double value) {
  fmt::print("{} {} {} {} {}\n", what, from, to, bytes, value);
}

// One device's memory of the other process, copied to this process's on device `to`.
void copy_opened(const cudaIpcMemHandle_t& handle, int from, int to,
                 const std::vector<std::string>& sizes) {
  check(cudaSetDevice(to), "choosing a device");
  const DeviceBuffer target(static_cast<std::size_t>(parse_bytes(sizes.back())));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  void* source = nullptr;
  double opening = 0;
  double closing = 0;
  // The first also makes what later ones find.
  for (int i = 0; i <= tries; ++i) {
    const double begin = now();
    check(cudaIpcOpenMemHandle(&source, handle, cudaIpcMemLazyEnablePeerAccess), "opening memory");
    const double opened = now();
    if (i > 0) opening += (opened - begin) / tries;
    if (i == tries) break;
    check(cudaIpcCloseMemHandle(source), "closing memory");
    closing += (now() - opened) / tries;
  }
  say("open", from, to, 0, opening);
  say("close", from, to, 0, closing);
  for (const std::string& size : sizes) {
    const std::size_t bytes = parse_bytes(size);
    const std::size_t rounds = std::clamp<std::size_t>((std::size_t{2} << 30) / bytes, 2, 500);
    double best = 0;
    for (int run = 0; run < 3; ++run) {
      const double begin = now();
      for (std::size_t i = 0; i < rounds; ++i)
        check(cudaMemcpyAsync(target.data(), source, bytes, cudaMemcpyDeviceToDevice, stream),
              "a copy");
      check(cudaStreamSynchronize(stream), "copies");
      best = std::max(best, static_cast<double>(rounds * bytes) / (now() - begin));
    }
    say("copy", from, to, bytes, best);
  }
  check(cudaIpcCloseMemHandle(source), "closing memory");
  cudaStreamDestroy(stream);
}

}  // namespace

void copy_from_other_process(const Settings& settings) {
  const std::vector<std::string> handles = words_of(settings.text("handles"));
  const std::vector<std::string> sizes = words_of(settings.text("sizes"));
  require(!handles.empty() && !sizes.empty(), "ipc needs --handles and --sizes");
  const int count = static_cast<int>(handles.size());
  for (int from = 0; from < count; ++from) {
    const cudaIpcMemHandle_t handle = from_hex(handles[static_cast<std::size_t>(from)]);
    copy_opened(handle, from, from, sizes);
    if (count > 1) copy_opened(handle, from, (from + 1) % count, sizes);
  }
  std::fflush(stdout);
}

void measure_ipc(const Machine& machine, std::span<const std::size_t> sizes,
                 const std::function<void(const IpcFigure&)>& report) {
  require(!sizes.empty(), "no sizes to copy");
  std::vector<std::string> size_words;
  for (const std::size_t bytes : sizes) size_words.push_back(std::to_string(bytes));
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  std::vector<std::string> handles;
  for (const int ordinal : cuda::ordinals_of(machine)) {
    if (ordinal < 0) continue;
    check(cudaSetDevice(ordinal), "choosing a device");
    buffers.push_back(std::make_unique<DeviceBuffer>(sizes.back()));
    cudaIpcMemHandle_t handle{};
    const double begin = now();
    for (int i = 0; i < tries; ++i)
      check(cudaIpcGetMemHandle(&handle, buffers.back()->data()), "making a handle");
    const double seconds = (now() - begin) / tries;
    report({"get", static_cast<int>(handles.size()), static_cast<int>(handles.size()), 0, seconds});
    handles.push_back(to_hex(handle));
  }
  std::istringstream said(run_self(
      {"quadriga-bench", "ipc", "--handles", joined(handles), "--sizes", joined(size_words)}));
  IpcFigure figure;
  while (said >> figure.what >> figure.from >> figure.to >> figure.bytes >> figure.value)
    report(figure);
}

}  // namespace quadriga::bench
