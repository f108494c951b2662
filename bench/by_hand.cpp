// SPDX-License-Identifier: BSD-3-Clause
// bench/by_hand.cpp: commands queued on streams of the virtual clock; nothing is computed.
#include "by_hand.h"

#include <algorithm>
#include <memory>

#include "addresses.h"
#include "device/factory.h"

namespace quadriga::bench {
namespace {

constexpr std::size_t most_chunk_bytes = std::size_t{1} << 31;

class Program {
 public:
  /// Each device has so many streams.
  Program(const Machine& machine, const std::vector<HandTimes>& chunks, std::size_t streams)
      : chunks_(chunks),
        streams_a_device_(streams),
        backend_(make_virtual_backend(machine, {.compute = false})),
        memory_(most_chunk_bytes) {
    for (std::size_t d = 0; d < machine.devices.size(); ++d)
      for (std::size_t s = 0; s < streams; ++s)
        streams_.push_back(backend_->create_stream(static_cast<DeviceId>(d), StreamKind::compute));
  }

  std::size_t devices() const { return backend_->machine().devices.size(); }
  std::size_t chunks() const { return chunks_.size(); }

  void copy_in(std::size_t chunk, std::size_t device, std::size_t stream) {
    copy(device, stream, host_space, space_of(device), chunks_[chunk].in_bytes);
  }
  void launch(std::size_t chunk, std::size_t device, std::size_t stream) {
    Launch launch;
    launch.name = "dummy";
    launch.cost = Cost::of_seconds(chunks_[chunk].kernel_seconds);
    backend_->launch(at(device, stream), launch);
    ++queued_;
  }
  void copy_out(std::size_t chunk, std::size_t device, std::size_t stream) {
    copy(device, stream, space_of(device), host_space, chunks_[chunk].out_bytes);
  }
  void all_of(std::size_t chunk, std::size_t device, std::size_t stream) {
    copy_in(chunk, device, stream);
    launch(chunk, device, stream);
    copy_out(chunk, device, stream);
  }

  /// The device whose command ended next; all that is queued has ended: devices().
  std::size_t wait() {
    if (queued_ == 0) return devices();
    Completion done;
    while (backend_->next_completion({&done, 1}, never) == 0) {
    }
    --queued_;
    return done.event.stream / streams_a_device_;
  }
  double seconds() {
    while (wait() < devices()) {
    }
    return 1e-9 * static_cast<double>(backend_->now());
  }

 private:
  StreamId at(std::size_t device, std::size_t stream) const {
    return streams_[device * streams_a_device_ + stream];
  }
  SpaceId space_of(std::size_t device) const { return backend_->machine().devices[device].space; }
  void copy(std::size_t device, std::size_t stream, SpaceId from, SpaceId to, double bytes) {
    auto* const place = static_cast<std::byte*>(memory_.get());
    backend_->copy(at(device, stream), {from, to, place, place, static_cast<std::size_t>(bytes)});
    ++queued_;
  }

  const std::vector<HandTimes>& chunks_;
  const std::size_t streams_a_device_;
  std::unique_ptr<Backend> backend_;
  const Addresses memory_;
  std::vector<StreamId> streams_;
  std::size_t queued_ = 0;
};

void naive(Program& program, std::size_t streams) {
  for (std::size_t chunk = 0; chunk < program.chunks(); ++chunk) {
    const std::size_t turn = chunk / program.devices();
    program.all_of(chunk, chunk % program.devices(), turn % streams);
  }
}

/// Each chunk of a batch has a stream, so that its kernel waits for no other's copy.
void batches(Program& program, std::size_t batch) {
  const std::size_t devices = program.devices();
  for (std::size_t begin = 0; begin < program.chunks(); begin += batch * devices) {
    const std::size_t end = std::min(program.chunks(), begin + batch * devices);
    const auto each = [&](auto command) {
      for (std::size_t chunk = begin; chunk < end; ++chunk)
        (program.*command)(chunk, chunk % devices, chunk / devices % batch);
    };
    each(&Program::copy_in);
    each(&Program::launch);
    each(&Program::copy_out);
    program.seconds();
  }
}

void threads(Program& program) {
  std::vector<std::size_t> commands(program.devices());  // Of its chunk, that haven't ended.
  std::size_t next = 0;
  const auto take = [&](std::size_t device) {
    if (next == program.chunks()) return;
    program.all_of(next++, device, 0);
    commands[device] = 3;
  };
  for (std::size_t device = 0; device < program.devices(); ++device) take(device);
  for (auto device = program.wait(); device < program.devices(); device = program.wait())
    if (--commands[device] == 0) take(device);
}

}  // namespace

double by_hand(HandWay way, const Machine& machine, const std::vector<HandTimes>& chunks,
               std::size_t batch) {
  const std::size_t streams = way == HandWay::naive ? 2 : way == HandWay::batches ? batch : 1;
  Program program(machine, chunks, streams);
  if (way == HandWay::naive) naive(program, streams);
  if (way == HandWay::batches) batches(program, batch);
  if (way == HandWay::threads) threads(program);
  return program.seconds();
}

}  // namespace quadriga::bench
