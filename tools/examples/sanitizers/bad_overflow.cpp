// SPDX-License-Identifier: BSD-3-Clause
// bad_overflow.cpp: reads past the end of an array.
#include <vector>

int main(int count, char**) {
  const std::vector<int> one(1);
  return one.data()[count];
}
