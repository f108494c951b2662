// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/schedule_news_test.cpp: who hears of what the scheduler tells.
#include "engine/schedule_news.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <cstring>
#include <optional>
#include <vector>

#include "device/factory.h"

namespace quadriga {
namespace {

constexpr std::size_t block_bytes = 64;

/// Two emulated devices, and a detached task that has a stream of the first one.
class ScheduleNewsTest : public ::testing::Test {
 protected:
  ScheduleNewsTest() {
    record_.open(0, 0, StreamKind::compute, "compute");
    codelet_.name = "deferred";
    codelet_.detaches = true;
    task_.codelet = &codelet_;
    planned_.task = &task_;
    planned_.device = 0;
  }
  void make(ScheduleNews::Promise promise, bool poisons) {
    news_.emplace(machine_, spaces_, ScheduleNews::Readers{failures_, record_, releases_, waiters_},
                  std::move(promise), poisons);
  }
  static std::exception_ptr lost() {
    return std::make_exception_ptr(Error(Errc::device_lost, "gone"));
  }
  /// Of a block of the first device: whether it is still what it was.
  bool survives() {
    std::vector<std::byte> block(block_bytes, std::byte{7});
    news_->freed(1, block.data(), block.size());
    return block == std::vector<std::byte>(block_bytes, std::byte{7});
  }

  Machine machine_ = Machine::parse("emulated:2,memory=1MiB");
  std::unique_ptr<Backend> backend_ = make_virtual_backend(machine_);
  DeviceSpaces spaces_{*backend_, machine_};
  Graph graph_{8};
  Failures failures_;
  Recorder recorder_{machine_, false};
  RunRecord record_{recorder_, machine_, *backend_};
  Inbox inbox_;
  Releases releases_{graph_, inbox_};
  Waiters waiters_{[] { return Nanoseconds{0}; }};
  Codelet codelet_;
  Task task_;
  PlannedTask planned_;
  std::optional<ScheduleNews> news_;
};

struct Watch final : CopyWatch {
  void copied(Datum&, SpaceId to, std::exception_ptr error) noexcept override {
    ends.push_back(to);
    failed = error != nullptr;
  }
  std::vector<SpaceId> ends;
  bool failed = false;
};

TEST_F(ScheduleNewsTest, WhatIsLostStaysLost) {
  make(nullptr, false);
  EXPECT_FALSE(news_->is_lost(1));
  news_->device_lost(1);
  EXPECT_TRUE(news_->is_lost(1));
  EXPECT_FALSE(news_->is_lost(0));
}

TEST_F(ScheduleNewsTest, LostContentIsToldToWhoWatchesItOrByTheNextWait) {
  make(nullptr, false);
  Watch watch;
  Datum watched, other;
  watched.watch = &watch;
  news_->content_lost(watched, lost());
  EXPECT_EQ(watch.ends, std::vector<SpaceId>{no_space});
  EXPECT_TRUE(watch.failed);
  EXPECT_EQ(failures_.take_first(), nullptr);
  news_->content_lost(other, lost());
  EXPECT_NE(failures_.take_first(), nullptr);
}

TEST_F(ScheduleNewsTest, CopiesAreToldToWhoWatchesTheData) {
  make(nullptr, false);
  Watch watch;
  Datum watched;
  watched.watch = &watch;
  Completion failed;
  failed.error = lost();
  news_->copied({.to = host_space, .datum = &watched}, failed);
  EXPECT_EQ(watch.ends, std::vector<SpaceId>{host_space});
  EXPECT_TRUE(watch.failed);
  news_->copied({}, failed);
  EXPECT_EQ(watch.ends.size(), 1u) << "nobody watches what is forgotten";
}

TEST_F(ScheduleNewsTest, PromisesAreKeptWhereBodiesArentRun) {
  std::vector<Task*> kept;
  make([&kept](Task& task) { kept.push_back(&task); }, false);
  for (const TaskState state : {TaskState::placed, TaskState::ready, TaskState::skipped})
    planned_.enter(state);
  news_->ran(planned_, {});
  EXPECT_EQ(kept, std::vector<Task*>{&task_});
  codelet_.detaches = false;
  news_->ran(planned_, {});
  EXPECT_EQ(kept.size(), 1u) << "its end is no promise";
  codelet_.detaches = true;
  make(nullptr, false);
  news_->ran(planned_, {});
  EXPECT_EQ(kept.size(), 1u);
}

TEST_F(ScheduleNewsTest, FreedBlocksArePoisonedOnRequest) {
  make(nullptr, true);
  EXPECT_FALSE(survives());
  make(nullptr, false);
  EXPECT_TRUE(survives());
}

}  // namespace
}  // namespace quadriga
