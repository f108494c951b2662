// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/base/config_test.cpp: which source wins, and what is said of values that are refused.
#include "base/config.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

namespace quadriga {
namespace {

class Configuration : public ::testing::Test {
 protected:
  ~Configuration() override { std::remove(path_.c_str()); }

  ConfigSources sources() {
    return {[this] { return environment_; },
            [this] {
              return std::vector<std::string>{"/nonexistent/quadriga.json", path_};
            }};
  }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  std::string refusal(auto&& call, Errc code = Errc::invalid_argument) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  std::map<std::string, std::string> environment_;
  std::string path_ = testing::TempDir() + "quadriga_" + std::to_string(::getpid()) + ".json";
  Config config_{sources()};
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Configuration, HasDefaults) {
  EXPECT_EQ(config_.text("devices"), "auto");
  EXPECT_EQ(config_.integer("window"), 16384);
  EXPECT_FALSE(config_.flag("trace"));
  EXPECT_EQ(config_.get("tile").origin, SettingOrigin::built_in);
}

TEST_F(Configuration, LaterSourcesWin) {
  write(R"({"tile": 256, "trace": true, "host_memory": "2GiB"})");
  EXPECT_EQ(config_.integer("tile"), 256);
  EXPECT_EQ(config_.get("tile").origin, SettingOrigin::file);
  EXPECT_EQ(config_.get("tile").source, path_);
  EXPECT_TRUE(config_.flag("trace"));
  EXPECT_EQ(config_.bytes("host_memory"), std::size_t{2} << 30);

  environment_["QUADRIGA_TILE"] = "512";
  EXPECT_EQ(config_.integer("tile"), 512);
  EXPECT_EQ(config_.get("tile").source, "QUADRIGA_TILE");

  config_.set("tile", "1024");
  EXPECT_EQ(config_.integer("tile"), 1024);
  EXPECT_EQ(config_.get("tile").origin, SettingOrigin::program);

  EXPECT_EQ(config_.integer("tile", 2048), 2048);
  EXPECT_EQ(config_.get("tile", "2048").origin, SettingOrigin::argument);
  EXPECT_FALSE(config_.flag("trace", false));
  EXPECT_EQ(config_.bytes("host_memory", 7), 7u);

  config_.unset("tile");
  EXPECT_EQ(config_.integer("tile"), 512);
}

TEST_F(Configuration, KeepsValuesByTheirTypes) {
  config_.set("trace", "ON");
  EXPECT_TRUE(config_.flag("trace"));
  EXPECT_EQ(config_.text("trace"), "true");
  EXPECT_EQ(config_.get("trace").type, SettingType::flag);
  environment_["QUADRIGA_LOG_LEVEL"] = "DEBUG";
  EXPECT_EQ(config_.text("log_level"), "debug");
  EXPECT_EQ(config_.get("tile").type, SettingType::number);
  EXPECT_EQ(config_.get("host_memory").type, SettingType::bytes);
  EXPECT_EQ(config_.get("spill").type, SettingType::text);
}

TEST_F(Configuration, RefusesBadValuesByKeyValueSourceAndWhatIsAccepted) {
  environment_["QUADRIGA_TRACE"] = "fast";
  const std::string message = refusal([&] { config_.get("trace"); });
  for (const char* part : {"trace", "'fast'", "QUADRIGA_TRACE", "true, on"})
    EXPECT_TRUE(contains(message, part)) << message;
  EXPECT_TRUE(contains(refusal([&] { config_.set("policy", ""); }), "affinity or steal"));
  EXPECT_TRUE(contains(refusal([&] { config_.set("window", "0"); }), "window"));
  EXPECT_TRUE(contains(refusal([&] { config_.integer("tile", -1); }), "'-1' (given by argument)"));
  for (const auto& [key, value] : std::map<std::string, std::string>{{"trace", "maybe"},
                                                                     {"host_memory", "lots"},
                                                                     {"devices", ""},
                                                                     {"threads", "1.5"},
                                                                     {"log_level", "loud"}})
    EXPECT_TRUE(contains(refusal([&] { config_.set(key, value); }), key));
}

TEST_F(Configuration, RefusesUnknownKeysInEverySource) {
  EXPECT_TRUE(contains(refusal([&] { config_.set("tiles", "1"); }), "'tiles'"));
  EXPECT_TRUE(contains(refusal([&] { config_.get("tiles"); }),
                       "known are devices, machine, policy, eviction, tile"));
  write(R"({"tiles": 256})");
  EXPECT_TRUE(contains(refusal([&] { config_.get("tile"); }), path_));
  write("{}");
  environment_["QUADRIGA_TEST_SEED"] = "left to the tests";
  EXPECT_EQ(config_.integer("tile"), 0);
  environment_["QUADRIGA_TILES"] = "256";
  EXPECT_TRUE(contains(refusal([&] { config_.get("tile"); }), "QUADRIGA_TILES"));
}

TEST_F(Configuration, RefusesFilesThatAreNoObject) {
  for (const char* text : {"", "[1]", "{\"tile\": ", "no JSON"}) {
    write(text);
    EXPECT_TRUE(contains(refusal([&] { config_.get("tile"); }), path_)) << text;
  }
}

TEST_F(Configuration, ListsEverySettingWithItsMeaning) {
  const auto all = config_.all();
  std::set<std::string> keys;
  for (const Setting& setting : all) {
    EXPECT_FALSE(setting.meaning.empty()) << setting.key;
    EXPECT_TRUE(keys.insert(setting.key).second) << setting.key << " is there twice";
  }
  for (const char* const key : {"devices", "machine", "policy", "tile", "log_level"})
    EXPECT_TRUE(keys.contains(key)) << key;
  EXPECT_EQ(name(SettingOrigin::environment), "environment");
}

TEST(ProcessConfiguration, ReadsTheEnvironmentOfTheProcess) {
  ::setenv("QUADRIGA_WINDOW", "99", 1);
  EXPECT_EQ(Config().integer("window"), 99);
  ::unsetenv("QUADRIGA_WINDOW");
  EXPECT_NE(Config().integer("window"), 99);
}

}  // namespace
}  // namespace quadriga
