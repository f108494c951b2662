// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/base/shared_library_test.cpp: a library that is there, and one that isn't.
#include "base/shared_library.h"

#include <gtest/gtest.h>

namespace quadriga {
namespace {

TEST(SharedLibrary, GivesFunctionsOfOneThatIsThere) {
  const SharedLibrary library("libm.so.6");
  EXPECT_EQ(library.absence(), "");
  void* const found = library.find("floor");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(found)(2.5), 2.0);
  EXPECT_EQ(library.find("no_function_of_this_name"), nullptr);
}

TEST(SharedLibrary, SaysWhyOneIsAbsent) {
  const SharedLibrary library("libnowhere.so.9");
  EXPECT_NE(library.absence().find("libnowhere.so.9"), std::string::npos) << library.absence();
  EXPECT_EQ(library.find("floor"), nullptr);
}

}  // namespace
}  // namespace quadriga
