// SPDX-License-Identifier: BSD-3-Clause
// src/message/nccl/library.cpp: finds NCCL's file and functions.
#include "message/nccl/library.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <climits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/log.h"

namespace quadriga::message {
namespace {

constexpr auto usual_name = "libnccl.so.2";
// The first one whose communicators can be started without waiting, with this configuration.
constexpr int least_version = 21700;

std::mutex& places_mutex() {  // Guards places() and the libraries that were opened.
  static auto* const mutex = new std::mutex;
  return *mutex;
}
std::vector<std::string>& places() {
  static auto* const files = new std::vector<std::string>;
  return *files;
}

}  // namespace

// What is beyond stays as the library has it.
struct NcclLibrary::Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = least_version;
  int blocking = 0;
  int cluster_size = INT_MIN;
  int least_blocks = INT_MIN;
  int most_blocks = INT_MIN;
  const char* network = nullptr;
};

NcclLibrary::NcclLibrary(std::string_view setting, std::span<const std::string> places) {
  if (setting == "off") {
    absence_ = "the setting nccl is off";
    return;
  }
  open(setting, places);
  if (!absence_.empty()) return;
  find(get_version_, "ncclGetVersion");
  find(get_unique_id_, "ncclGetUniqueId");
  find(start_, "ncclCommInitRankConfig");
  find(async_error_, "ncclCommGetAsyncError");
  find(finalize_, "ncclCommFinalize");
  find(destroy_, "ncclCommDestroy");
  find(abort_, "ncclCommAbort");
  find(error_text_, "ncclGetErrorString");
  find(broadcast_, "ncclBroadcast");
  find(reduce_, "ncclReduce");
  find(all_reduce_, "ncclAllReduce");
  find(all_gather_, "ncclAllGather");
  find(reduce_scatter_, "ncclReduceScatter");
  if (!absence_.empty()) return;
  int version = 0;
  if (get_version_(&version) != nccl_success || version < least_version) {
    absence_ =
        fmt::format("{} is of version {}; expected {} or later", name_, version, least_version);
    return;
  }
  version_ = version;
}

void NcclLibrary::open(std::string_view setting, std::span<const std::string> places) {
  std::vector<std::string> names;
  if (setting != "auto") {
    names.emplace_back(setting);
  } else {
    names.emplace_back(usual_name);
    names.insert(names.end(), places.begin(), places.end());
  }
  for (const std::string& name : names) {
    const SharedLibrary found(name);
    if (found.absence().empty()) {
      library_ = found;
      name_ = name;
      absence_.clear();
      return;
    }
    if (absence_.empty()) absence_ = found.absence();
  }
}

template <class Function>
void NcclLibrary::find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(library_->find(name));
  if (function == nullptr && absence_.empty()) absence_ = fmt::format("{} has no {}", name_, name);
}

// Settings that can't be read are another's to report: a rank that throws here would do it alone.
const NcclLibrary& NcclLibrary::of_settings() {
  static auto* const opened = new std::map<std::string, std::unique_ptr<NcclLibrary>>;
  std::string setting = "off";
  try {
    setting = quadriga::Config::global().text("nccl");
  } catch (const quadriga::Error& error) {
    log(LogLevel::warning, fmt::format("collectives go without NCCL: {}", error.what()));
  }
  const std::lock_guard lock(places_mutex());
  std::unique_ptr<NcclLibrary>& found = (*opened)[setting];
  if (!found) found = std::make_unique<NcclLibrary>(setting, places());
  return *found;
}

void NcclLibrary::add_places(std::span<const std::string> files) {
  const std::lock_guard lock(places_mutex());
  places().insert(places().end(), files.begin(), files.end());
}

std::string NcclLibrary::version_text() const {
  return fmt::format("{}.{}.{}", version_ / 10000, version_ / 100 % 100, version_ % 100);
}

std::string NcclLibrary::error_text(int result) const {
  const char* const text = error_text_ ? error_text_(result) : nullptr;
  return text ? text : fmt::format("error {}", result);
}

int NcclLibrary::start(NcclHandle& made, int ranks, const NcclId& id, int rank) const {
  Config config;
  return start_(&made, ranks, id, rank, &config);
}

int NcclLibrary::async_error(NcclHandle of) const {
  int found = nccl_success;
  const int result = async_error_(of, &found);
  return result == nccl_success ? found : result;
}

}  // namespace quadriga::message
