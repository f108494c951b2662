// SPDX-License-Identifier: BSD-3-Clause
// src/base/config.cpp: the table of settings, how values are checked, and which source wins.
#include "base/config.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/cgroup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"

namespace quadriga {
namespace {

using Values = std::map<std::string, Setting, std::less<>>;

constexpr std::string_view prefix = "QUADRIGA_";
// Variables that the tests read for themselves, as the seed of a random run.
constexpr std::string_view test_prefix = "QUADRIGA_TEST_";
// Variables that `quadriga launch` gives to the processes that it starts.
constexpr std::string_view launch_prefix = "QUADRIGA_LAUNCH_";
// Variables of the library that is preloaded into MPI programs.
constexpr std::string_view mpi_prefix = "QUADRIGA_MPI_";

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

bool parse_flag(std::string_view text) {
  const std::string small = in_small_letters(text);
  for (const std::string_view yes : {"1", "true", "on", "yes"})
    if (small == yes) return true;
  for (const std::string_view no : {"0", "false", "off", "no"})
    if (small == no) return false;
  fail(Errc::invalid_argument, "not a flag");
}

// The functions below return a value as it is kept: true or false of flags, levels in small
// letters. They throw Error if the text isn't accepted.
std::string any_text(std::string_view text) { return std::string(text); }
// Which policies there are is known when an engine is made: programs register their own.
std::string some_text(std::string_view text) {
  require(!text.empty(), "empty");
  return std::string(text);
}
std::string eviction_text(std::string_view text) {
  const std::string small = in_small_letters(text);
  for (const std::string_view known : {"policy", "farthest_use", "least_recent", "read_first"})
    if (small == known) return small;
  fail(Errc::invalid_argument, "not a rule");
}
std::string count_text(std::string_view text) {
  return std::to_string(parse_integer(text, 0, INT_MAX));
}
std::string window_text(std::string_view text) {
  return std::to_string(parse_integer(text, 1, INT_MAX));
}
std::string flag_text(std::string_view text) { return parse_flag(text) ? "true" : "false"; }
std::string size_text(std::string_view text) {
  parse_bytes(text);
  return std::string(text);
}
/// One rate, or two that a comma separates; empty: none is stated.
std::string rates_text(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (!text.empty()) parse_bytes_per_second(text.substr(0, comma));
  if (comma != std::string_view::npos) parse_bytes_per_second(text.substr(comma + 1));
  return std::string(text);
}
std::string level_text(std::string_view text) { return std::string(name(parse_log_level(text))); }

struct Key {
  std::string_view name;
  SettingType type;
  std::string_view built_in;
  std::string_view accepted;
  std::string_view meaning;
  std::string (*kept)(std::string_view text);
};

constexpr std::array keys{
    Key{"devices", SettingType::text, "auto",
        "auto, or a device list such as cpu:2, cuda or emulated:4,memory=64MiB",
        "devices that run the tasks; auto: all usable GPUs, else the CPU cores", some_text},
    Key{"machine", SettingType::text, "", "a path",
        "machine description from bench copies; its measured rates replace estimates", any_text},
    Key{"policy", SettingType::text, "affinity", "the name of a policy, such as affinity or steal",
        "scheduling policy: chooses devices and order of tasks", some_text},
    Key{"eviction", SettingType::text, "policy", "policy, farthest_use, least_recent or read_first",
        "which tile leaves a full device; policy: as the scheduling policy says", eviction_text},
    Key{"tile", SettingType::number, "0", "a whole number from 0 to 2147483647",
        "tile size, in rows and columns; 0: chosen by size and memory", count_text},
    Key{"window", SettingType::number, "16384", "a whole number from 1 to 2147483647",
        "maximum number of tasks submitted but not ended", window_text},
    Key{"trace", SettingType::flag, "false", "true, on, yes, 1, false, off, no or 0",
        "record a trace of each run", flag_text},
    Key{"trace_seconds", SettingType::number, "0", "a whole number from 0 to 2147483647",
        "how many seconds of its end a trace keeps, for runs without an end; 0: all", count_text},
    Key{"host_memory", SettingType::bytes, "0", "a size such as 600MB or 2GiB",
        "maximum host memory for tiles without a home; 0: 80 % of free memory", size_text},
    Key{"spill", SettingType::text, "", "a path",
        "file that holds tiles without a home that the host's memory has no room for", any_text},
    Key{"spill_rate", SettingType::text, "", "a rate such as 2GB/s, or two: 1GB/s,2GB/s",
        "rate of the spill file's disk, or of writing and reading; default: measured", rates_text},
    Key{"renaming", SettingType::bytes, "0", "a size such as 600MB or 2GiB",
        "host memory for what tasks overwrite while others read it, so that they needn't wait",
        size_text},
    Key{"schedule_log", SettingType::text, "", "a path",
        "file for the scheduler's events and decisions, which quadriga-bench replay repeats",
        any_text},
    Key{"threads", SettingType::number, "0", "a whole number from 0 to 2147483647",
        "cores that compute; 0: all that affinity and cgroups allow", count_text},
    Key{"cache", SettingType::text, "", "a folder, or off",
        "folder of compiled kernels; default: quadriga in the user's cache folder", any_text},
    Key{"allow_tf32", SettingType::flag, "false", "true, on, yes, 1, false, off, no or 0",
        "GPUs may round the factors of float32 products to TF32", flag_text},
    Key{"reproducible", SettingType::flag, "false", "true, on, yes, 1, false, off, no or 0",
        "results are bitwise identical for any number of devices of a kind", flag_text},
    Key{"divide", SettingType::flag, "true", "true, on, yes, 1, false, off, no or 0",
        "tasks that say how they divide may be divided on idle cores", flag_text},
    Key{"planning_percent", SettingType::number, "10", "a whole number from 0 to 2147483647",
        "time to try plans of a factorization or product in, when its size is new; of its own time",
        count_text},
    Key{"cuda_pool", SettingType::flag, "false", "true, on, yes, 1, false, off, no or 0",
        "GPU memory comes from CUDA's default pools, which other libraries may share", flag_text},
    Key{"nccl", SettingType::text, "off", "auto, off, or a path",
        "NVIDIA's library for collectives of arrays on GPUs: the file; auto: where it is found",
        some_text},
    Key{"log_level", SettingType::text, "warning",
        "debug, info, warning, error or off, in any case", "messages below this level are dropped",
        level_text},
};

std::string key_names() {
  std::string names;
  for (const Key& key : keys) names += fmt::format("{}{}", names.empty() ? "" : ", ", key.name);
  return names;
}

const Key& find_key(std::string_view name, std::string_view source) {
  const auto found = std::ranges::find(keys, name, &Key::name);
  if (found == keys.end())
    fail(Errc::invalid_argument,
         fmt::format("unknown setting '{}'{}; known are {}", name, source, key_names()));
  return *found;
}

std::string place(SettingOrigin origin, std::string_view source) {
  return source.empty() ? fmt::format(" (given by {})", name(origin))
                        : fmt::format(" (from {})", source);
}

Setting checked(const Key& key, std::string_view value, SettingOrigin origin,
                std::string_view source) {
  try {
    return {std::string(key.name), key.kept(value),          origin,
            std::string(source),   std::string(key.meaning), key.type};
  } catch (const Error&) {
    fail(Errc::invalid_argument, fmt::format("setting {}: '{}'{} is not accepted; expected {}",
                                             key.name, value, place(origin, source), key.accepted));
  }
}

void put(Values& values, Setting setting) {
  std::string key = setting.key;
  values.insert_or_assign(std::move(key), std::move(setting));
}

nlohmann::json read_object(const std::string& path, std::ifstream& file) {
  auto content = nlohmann::json::parse(file, nullptr, false);
  if (!content.is_object())
    fail(Errc::invalid_argument,
         fmt::format("{} is not a JSON object; expected settings, as {{\"devices\": \"cpu:2\"}}",
                     path));
  return content;
}

void read_file(const std::string& path, Values& values) {
  try {
    require_regular(path);
  } catch (const Error& error) {
    fail(error.code(), fmt::format("can't read the settings in {}", error.what()));
  }
  std::ifstream file(path);
  file.peek();  // a folder opens, but can't be read
  if (file.bad() || !file.is_open())
    fail(Errc::io, fmt::format("can't read the settings in {}", path));
  const nlohmann::json object = read_object(path, file);
  for (const auto& [name, value] : object.items()) {
    const Key& key = find_key(name, place(SettingOrigin::file, path));
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    put(values, checked(key, text, SettingOrigin::file, path));
  }
}

void read_environment(const std::map<std::string, std::string>& variables, Values& values) {
  for (const auto& [variable, value] : variables) {
    if (variable.starts_with(test_prefix) || variable.starts_with(launch_prefix) ||
        variable.starts_with(mpi_prefix))
      continue;
    const std::string name = in_small_letters(std::string_view(variable).substr(prefix.size()));
    const Key& key = find_key(name, place(SettingOrigin::environment, variable));
    put(values, checked(key, value, SettingOrigin::environment, variable));
  }
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = std::min(text.find('='), text.size());
    if (text.starts_with(prefix) && equals < text.size())
      found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

std::vector<std::string> process_files() {
  std::vector<std::string> files{"./quadriga.json"};
  const char* const config_home = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  if (config_home != nullptr && *config_home != '\0')
    files.push_back(std::string(config_home) + "/quadriga/config.json");
  else if (home != nullptr && *home != '\0')
    files.push_back(std::string(home) + "/.config/quadriga/config.json");
  return files;
}

// All settings by the sources outside of the program.
Values outside_values(const ConfigSources& sources) {
  Values values;
  for (const Key& key : keys) put(values, checked(key, key.built_in, SettingOrigin::built_in, ""));
  for (const std::string& path : sources.files()) {
    if (::access(path.c_str(), F_OK) != 0) continue;
    read_file(path, values);
    break;
  }
  read_environment(sources.environment(), values);
  return values;
}

}  // namespace

std::string_view name(SettingOrigin origin) noexcept {
  constexpr std::array<std::string_view, 5> names{"default", "file", "environment", "program",
                                                  "argument"};
  return names[static_cast<std::size_t>(origin)];
}

ConfigSources ConfigSources::process() { return {process_environment, process_files}; }

Config::Config(ConfigSources sources) : sources_(std::move(sources)) {}

Config& Config::global() {
  static Config instance;
  return instance;
}

void Config::set(std::string_view key, std::string_view value) {
  checked(find_key(key, ""), value, SettingOrigin::program, "");
  const std::lock_guard lock(mutex_);
  program_.insert_or_assign(std::string(key), std::string(value));
}

void Config::unset(std::string_view key) {
  find_key(key, "");
  const std::lock_guard lock(mutex_);
  program_.erase(std::string(key));
}

Setting Config::get(std::string_view key, std::string_view argument) const {
  const Key& known = find_key(key, "");
  if (!argument.empty()) return checked(known, argument, SettingOrigin::argument, "");
  {
    const std::lock_guard lock(mutex_);
    const auto found = program_.find(key);
    if (found != program_.end()) return checked(known, found->second, SettingOrigin::program, "");
  }
  return outside_values(sources_).find(key)->second;
}

std::vector<Setting> Config::all() const {
  std::vector<Setting> settings;
  for (const Key& key : keys) settings.push_back(get(key.name));
  return settings;
}

std::string Config::text(std::string_view key, std::string_view argument) const {
  return get(key, argument).value;
}

long long Config::integer(std::string_view key, long long argument) const {
  const std::string given = argument == 0 ? "" : std::to_string(argument);
  return parse_integer(get(key, given).value, 0, INT_MAX);
}

std::size_t Config::bytes(std::string_view key, std::size_t argument) const {
  return argument != 0 ? argument : parse_bytes(get(key).value);
}

bool Config::flag(std::string_view key, std::optional<bool> argument) const {
  return argument ? *argument : parse_flag(get(key).value);
}

int computing_cores() {
  const int usable = usable_cores();
  const std::int64_t wanted = parse_integer(Config::global().get("threads").value, 0, 1 << 30);
  return wanted > 0 ? static_cast<int>(std::min<std::int64_t>(wanted, usable)) : usable;
}

std::string cache_folder() {
  const std::string given = Config::global().get("cache").value;
  if (given == "off") return "";
  if (!given.empty()) return given;
  const char* const cache_home = std::getenv("XDG_CACHE_HOME");
  // What isn't absolute doesn't count, as the XDG base directory specification wants it.
  if (cache_home != nullptr && *cache_home == '/') return std::string(cache_home) + "/quadriga";
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/quadriga" : "";
}

std::map<std::string, std::string> launch_variables() {
  std::map<std::string, std::string> found = process_environment();
  std::erase_if(found, [](const auto& each) { return !each.first.starts_with(launch_prefix); });
  for (const char* const name :
       {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMIX_NAMESPACE", "PMI_RANK", "PMI_SIZE"})
    if (const char* const value = std::getenv(name)) found.emplace(name, value);
  return found;
}

std::map<std::string, std::string> mpi_variables() {
  std::map<std::string, std::string> found = process_environment();
  std::erase_if(found, [](const auto& each) { return !each.first.starts_with(mpi_prefix); });
  return found;
}

std::optional<std::string> variable_of_process(int process, std::string_view name) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return std::nullopt;
}

std::optional<std::string> cuda_visible_devices() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible ? std::optional<std::string>(visible) : std::nullopt;
}

}  // namespace quadriga
