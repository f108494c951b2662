// SPDX-License-Identifier: BSD-3-Clause
// python/src/named_tasks.cpp: counts the holds on the numbers of failed tasks.
#include "named_tasks.h"

namespace quadriga::python {

NamedTasks::Hold NamedTasks::hold(long long number) {
  const auto release = [known = known_, number](const void*) {
    const std::lock_guard lock(known->mutex);
    const auto found = known->holds.find(number);
    if (--found->second == 0) known->unnamed.insert(known->holds.extract(found));
  };
  {
    const std::lock_guard lock(known_->mutex);
    ++known_->holds[number];
    known_->unnamed.erase(number);
  }
  return {nullptr, release};
}

std::vector<long long> NamedTasks::take_unnamed() {
  const std::lock_guard lock(known_->mutex);
  std::vector<long long> numbers;
  for (const auto& [number, holds] : known_->unnamed) numbers.push_back(number);
  known_->unnamed.clear();
  return numbers;
}

}  // namespace quadriga::python
