// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/matching_test.cpp: matching against a plain model, by random events.
#include "message/matching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace quadriga::message {
namespace {

Address drawn(Random& random, bool wildcards) {
  Address address{static_cast<std::uint32_t>(random.below(2)), static_cast<int>(random.below(3)),
                  static_cast<int>(random.below(3))};
  if (wildcards && random.chance(0.3)) address.source = any_source;
  if (wildcards && random.chance(0.3)) address.tag = any_tag;
  return address;
}

struct Entry {
  Address address;
  int id;
};

int take(std::vector<Entry>& from, auto&& accepts) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!accepts(from[i].address)) continue;
    const int id = from[i].id;
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
    return id;
  }
  return -1;
}

TEST(Matching, FollowsAPlainModel) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Matching<int, int> matching;
    std::vector<Entry> receives, messages;
    for (int id = 0; id < 100; ++id) {
      if (random.chance(0.5)) {
        const Address wanted = drawn(random, true);
        const int expected = take(messages, [&](const Address& a) { return wanted.accepts(a); });
        ASSERT_EQ(matching.take_message(wanted).value_or(-1), expected);
        if (expected >= 0) continue;
        receives.push_back({wanted, id});
        matching.add_receive(wanted, id);
      } else {
        const Address message = drawn(random, false);
        ASSERT_EQ(matching.accepts(message), std::ranges::any_of(receives, [&](const Entry& each) {
                    return each.address.accepts(message);
                  }));
        const int expected = take(receives, [&](const Address& a) { return a.accepts(message); });
        ASSERT_EQ(matching.take_receive(message).value_or(-1), expected);
        if (expected >= 0) continue;
        messages.push_back({message, id});
        matching.add_message(message, id);
      }
    }
    ASSERT_EQ(matching.messages(), messages.size());
    const auto removed =
        matching.remove_receives([](const Address&, int id) { return id % 2 == 0; });
    std::vector<int> even;
    for (const Entry& each : receives)
      if (each.id % 2 == 0) even.push_back(each.id);
    ASSERT_EQ(std::vector<int>(removed.begin(), removed.end()), even);
  }
}

// Against receives that take theirs one after the other. Each fifth message is gone.
TEST(Matching, FindsWhatReceivesThatComeFirstLeave) {
  const auto is_there = [](int id) { return id % 5 != 0; };
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Matching<int, int> matching;
    std::vector<Entry> messages;
    for (int id = 0; id < 12; ++id) {
      const Address message = drawn(random, false);
      matching.add_message(message, id);
      if (is_there(id)) messages.push_back({message, id});
    }
    std::vector<Address> before(random.below(6));
    for (Address& each : before) each = drawn(random, true);
    const Address wanted = drawn(random, true);
    for (const Address& each : before)
      take(messages, [&](const Address& message) { return each.accepts(message); });
    const int expected =
        take(messages, [&](const Address& message) { return wanted.accepts(message); });
    const auto* const found = matching.find_message(wanted, before, is_there);
    ASSERT_EQ(found ? found->second : -1, expected);
  }
}

TEST(Matching, ReceivesOverlapIfOneMessageIsAcceptedByBoth) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Address one = drawn(random, true), other = drawn(random, true);
    bool both = false;
    for (std::uint64_t context = 0; context < 2; ++context)
      for (int source = 0; source < 3; ++source)
        for (int tag = 0; tag < 3; ++tag) {
          const Address message{context, source, tag};
          both = both || (one.accepts(message) && other.accepts(message));
        }
    ASSERT_EQ(one.overlaps(other), both);
  }
}

}  // namespace
}  // namespace quadriga::message
