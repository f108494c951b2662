// SPDX-License-Identifier: BSD-3-Clause
// bad_race.cpp: two threads write one number without telling each other.
#include <thread>

int main() {
  int shared = 0;
  std::thread other([&] { ++shared; });
  ++shared;
  other.join();
  return shared == 2 ? 0 : 1;
}
