// SPDX-License-Identifier: BSD-3-Clause
// src/base/config.h: settings and the source of each value; only this room reads the
// environment.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga {

/// Where a setting's value comes from; a later one wins over an earlier one.
enum class SettingOrigin { built_in, file, environment, program, argument };

std::string_view name(SettingOrigin origin) noexcept;

/// What a value means: a text, a whole number, a number of bytes ("2GiB"), "true" or "false".
enum class SettingType { text, number, bytes, flag };

/// A setting as it is in force.
struct Setting {
  std::string key;
  std::string value;
  SettingOrigin origin = SettingOrigin::built_in;
  std::string source;   ///< The file or the variable it was read from; empty otherwise.
  std::string meaning;  ///< One line for show_config().
  SettingType type = SettingType::text;
};

/// What a Config reads from; tests put others in the place of the process's own.
struct ConfigSources {
  /// The environment variables that start with "QUADRIGA_".
  std::function<std::map<std::string, std::string>()> environment;
  /// JSON files; the first one that exists counts.
  std::function<std::vector<std::string>()> files;
  /// ./quadriga.json, then $XDG_CONFIG_HOME/quadriga/config.json (or ~/.config).
  static ConfigSources process();
};

/// The settings: devices, machine, policy, tile, window, trace, host_memory, spill, renaming,
/// threads, cache, allow_tf32, reproducible, divide, planning_percent, cuda_pool, nccl, log_level.
///
/// A value is the explicit argument if there is one, else what set() said, else the variable
/// QUADRIGA_<KEY>, else the file's, else the default. Files and variables are read at each call, so
/// what is reported is what counts. Thread-safe.
/// Errors:  invalid_argument naming key, value, its source and what is accepted, also for unknown
///          keys in any source; io if a file is there and can't be read.
class Config {
 public:
  explicit Config(ConfigSources sources = ConfigSources::process());
  /// The one that engines and the Python package use.
  static Config& global();

  void set(std::string_view key, std::string_view value);
  /// Forgets what set() said.
  void unset(std::string_view key);

  /// The setting in force; an `argument` that isn't empty wins.
  Setting get(std::string_view key, std::string_view argument = {}) const;
  /// All settings, in a fixed order.
  std::vector<Setting> all() const;

  /// The same as typed values; an argument of zero or nothing counts as not given.
  std::string text(std::string_view key, std::string_view argument = {}) const;
  long long integer(std::string_view key, long long argument = 0) const;
  std::size_t bytes(std::string_view key, std::size_t argument = 0) const;
  bool flag(std::string_view key, std::optional<bool> argument = std::nullopt) const;

 private:
  ConfigSources sources_;
  mutable std::mutex mutex_;  // Guards program_.
  std::map<std::string, std::string, std::less<>> program_;
};

/// Cores that compute: as the setting `threads` says, at most those that affinity and
/// cgroups allow.
int computing_cores();

/// Where to keep what can be made again, as the setting `cache` says; empty: nowhere.
std::string cache_folder();

/// What a launcher says of this process: the variables QUADRIGA_LAUNCH_*, and those of torchrun
/// (RANK, WORLD_SIZE and more) and of MPIs' mpiexec that name ranks and their world.
std::map<std::string, std::string> launch_variables();

/// The variables QUADRIGA_MPI_*, which the preload library reads (src/mpi).
std::map<std::string, std::string> mpi_variables();

/// A variable that a process of this user was started with; nothing also where it can't be read.
std::optional<std::string> variable_of_process(int process, std::string_view name);

/// What CUDA_VISIBLE_DEVICES says, if it is set.
std::optional<std::string> cuda_visible_devices();

}  // namespace quadriga
