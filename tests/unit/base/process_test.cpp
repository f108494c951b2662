// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/base/process_test.cpp: a child after fork() is told apart from its parent.
#include "base/process.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

namespace quadriga {
namespace {

TEST(Process, KnowsItself) {
  EXPECT_EQ(process_id(), ::getpid());
  EXPECT_NO_THROW(check_not_forked(process_id(), "it"));
}

TEST(Process, RefusesAnObjectOfTheParent) {
  const int owner = process_id();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int verdict = 1;
    try {
      check_not_forked(owner, "this object");
    } catch (const Error& error) {
      const bool names_it = std::string_view(error.what()).starts_with("this object was made in ");
      verdict = error.code() == Errc::unavailable && process_id() == ::getpid() && names_it ? 0 : 2;
    }
    ::_exit(verdict);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace quadriga
