// SPDX-License-Identifier: BSD-3-Clause
// src/message/nccl/library.h: NVIDIA's library of collectives between GPUs, opened at run time by
// declarations of our own, so that neither its header nor the library is needed to build or start.
//
// Numbers and layouts are those of NCCL 2.17, which later versions keep: what a caller doesn't know
// of a configuration stays as the library has it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/shared_library.h"

namespace quadriga::message {

/// One rank's part of a communicator of NCCL's.
using NcclHandle = struct NcclOpaque*;
/// Passed by value, as NCCL's.
struct NcclId {
  std::array<char, 128> bytes{};
};

/// What calls give; others are errors of which error_text() tells.
inline constexpr int nccl_success = 0;
inline constexpr int nccl_in_progress = 7;

class NcclLibrary {
 public:
  /// `setting` as Config's `nccl`: off, auto, or a file. Of `places` the first counts that can be
  /// opened, after the one that is loaded already or that the loader finds.
  NcclLibrary(std::string_view setting, std::span<const std::string> places);
  /// As the setting says now. Each is opened once, and stays open.
  static const NcclLibrary& of_settings();
  /// Where libraries may be that the loader doesn't look for: files, to be given before first use.
  static void add_places(std::span<const std::string> files);

  /// Why it can't be used; empty if it can.
  const std::string& absence() const noexcept { return absence_; }
  /// Its file, as far as it is known.
  const std::string& name() const noexcept { return name_; }
  /// 22703 is 2.27.3; 0: there is none.
  int version() const noexcept { return version_; }
  std::string version_text() const;
  std::string error_text(int result) const;

  // NCCL's functions, which give a result. No call waits for another rank: communicators are
  // started so that calls return at once, and async_error() tells how far they are.
  int unique_id(NcclId& id) const { return get_unique_id_(&id); }
  /// On the current device.
  int start(NcclHandle& made, int ranks, const NcclId& id, int rank) const;
  int async_error(NcclHandle of) const;
  int finalize(NcclHandle of) const { return finalize_(of); }
  int destroy(NcclHandle of) const { return destroy_(of); }
  /// May wait for devices.
  int abort(NcclHandle of) const { return abort_(of); }
  int broadcast(const void* from, void* into, std::size_t count, int type, int root, NcclHandle of,
                void* stream) const {
    return broadcast_(from, into, count, type, root, of, stream);
  }
  int reduce(const void* from, void* into, std::size_t count, int type, int operation, int root,
             NcclHandle of, void* stream) const {
    return reduce_(from, into, count, type, operation, root, of, stream);
  }
  int all_reduce(const void* from, void* into, std::size_t count, int type, int operation,
                 NcclHandle of, void* stream) const {
    return all_reduce_(from, into, count, type, operation, of, stream);
  }
  /// `count` of one rank's part, as in the next one.
  int all_gather(const void* from, void* into, std::size_t count, int type, NcclHandle of,
                 void* stream) const {
    return all_gather_(from, into, count, type, of, stream);
  }
  int reduce_scatter(const void* from, void* into, std::size_t count, int type, int operation,
                     NcclHandle of, void* stream) const {
    return reduce_scatter_(from, into, count, type, operation, of, stream);
  }

 private:
  struct Config;
  void open(std::string_view setting, std::span<const std::string> places);
  template <class Function>
  void find(Function*& function, const char* name);

  std::optional<SharedLibrary> library_;
  std::string name_, absence_;
  int version_ = 0;
  int (*get_version_)(int*) = nullptr;
  int (*get_unique_id_)(NcclId*) = nullptr;
  int (*start_)(NcclHandle*, int, NcclId, int, Config*) = nullptr;
  int (*async_error_)(NcclHandle, int*) = nullptr;
  int (*finalize_)(NcclHandle) = nullptr;
  int (*destroy_)(NcclHandle) = nullptr;
  int (*abort_)(NcclHandle) = nullptr;
  const char* (*error_text_)(int) = nullptr;
  int (*broadcast_)(const void*, void*, std::size_t, int, int, NcclHandle, void*) = nullptr;
  int (*reduce_)(const void*, void*, std::size_t, int, int, int, NcclHandle, void*) = nullptr;
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, NcclHandle, void*) = nullptr;
  int (*all_gather_)(const void*, void*, std::size_t, int, NcclHandle, void*) = nullptr;
  int (*reduce_scatter_)(const void*, void*, std::size_t, int, int, NcclHandle, void*) = nullptr;
};

}  // namespace quadriga::message
