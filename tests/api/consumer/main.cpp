// SPDX-License-Identifier: BSD-3-Clause
// tests/api/consumer/main.cpp: a user's program on the installed headers and archive.
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <cstdio>

int main() {
  const quadriga::Machine machine = quadriga::Machine::host();
  std::printf("%zu devices\n", machine.devices.size());
  try {
    quadriga::Machine::parse("no such device");
  } catch (const quadriga::Error& error) {
    std::printf("%s\n", error.what());
    return machine.devices.empty() ? 1 : 0;
  }
  return 1;
}
