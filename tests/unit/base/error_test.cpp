// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/base/error_test.cpp: errors carry code, message and place; every name is distinct.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/types.h>

#include <set>
#include <string>

namespace quadriga {
namespace {

TEST(Error, CarriesCodeMessageAndPlace) {
  try {
    fail(Errc::io, "no such file: a.npy");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::io);
    EXPECT_STREQ(error.what(), "no such file: a.npy");
    EXPECT_NE(std::string(error.where().file_name()).find("error_test.cpp"), std::string::npos);
  }
}

TEST(Error, RequireThrowsOnlyIfFalse) {
  EXPECT_NO_THROW(require(true, "fine"));
  EXPECT_THROW(require(false, "not fine"), Error);
}

TEST(Error, NotPositiveDefiniteNamesTheMinor) {
  const NotPositiveDefinite error(3);
  EXPECT_EQ(error.minor(), 3);
  EXPECT_EQ(error.code(), Errc::not_positive_definite);
  EXPECT_EQ(std::string(error.what()).rfind("3-th leading minor", 0), 0u);
}

TEST(Names, AreDistinct) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Errc::internal); ++code)
    names.insert(name(static_cast<Errc>(code)));
  EXPECT_EQ(names.size(), 11u);
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_EQ(name(DType::complex64), "complex64");
  EXPECT_EQ(name(Access::commute), "commute");
}

}  // namespace
}  // namespace quadriga
