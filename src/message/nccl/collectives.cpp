// SPDX-License-Identifier: BSD-3-Clause
// src/message/nccl/collectives.cpp: offers NCCL, joins ranks, and has it carry out a collective.
#include "message/nccl/collectives.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/process.h"
#include "base/random.h"

namespace quadriga::message {
namespace {

std::atomic<bool> turn_is_taken{false};

// Some take ten seconds on a machine with many GPUs; without this limit others could never begin.
constexpr std::chrono::seconds longest_join{60};

// Of a device of this host; 0: it isn't known.
std::uint64_t device_number_of(const Home& home) {
  const std::string& address = home.port->machine().devices[home.device].pci_address;
  if (address.empty()) return 0;
  std::uint64_t number = 1;
  for (const char each : address) number = mix(number ^ static_cast<unsigned char>(each));
  return number | 1;
}

bool has_ended(const TransferPtr& transfer) {
  return transfer->done.load(std::memory_order_acquire);
}

}  // namespace

NcclReport NcclGroups::report() const {
  const std::lock_guard lock(report_mutex_);
  return report_;
}

void NcclGroups::note(const std::function<void(NcclReport& report)>& change) {
  const std::lock_guard lock(report_mutex_);
  change(report_);
}

void NcclGroups::end() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (Member& each : members_) each.group.reset();
}

NcclUse::NcclUse(CommunicatorCore& communicator, CollectiveTerms& terms, const TreeOptions& options,
                 Wish wish)
    : communicator_(communicator),
      wish_(std::move(wish)),
      numbers_(nccl_numbers(wish_.kind, wish_.type, wish_.operation)) {
  const CollectiveBy by = communicator.by();
  if (by != CollectiveBy::chosen) {
    terms.detail = mix(terms.detail ^ mix(static_cast<std::uint64_t>(by)));
    terms.detail_text += fmt::format("{}by {}", terms.detail_text.empty() ? "" : ", ",
                                     by == CollectiveBy::nccl ? "NCCL" : "messages");
  }
  NcclGroups* const groups = communicator.nccl().get();
  const bool is_here = groups != nullptr && wish_.home.port && wish_.home.port->is_cuda();
  if (!is_here || by == CollectiveBy::ours || options != TreeOptions{} || !numbers_ ||
      communicator.size() == 1 || wish_.bytes == 0 || !terms.fault.empty())
    return;
  hold_ = std::unique_lock(groups->mutex_, std::try_to_lock);
  if (!hold_) return;
  // What travels in one slot isn't worth joining for.
  const std::size_t known = groups->members_.size();
  const bool is_large =
      wish_.bytes > static_cast<std::int64_t>(communicator.endpoint().slot_bytes());
  if (known == 0 && by == CollectiveBy::chosen && !is_large) return;
  const auto found = std::find_if(groups->members_.rbegin(), groups->members_.rend(),
                                  [&](const auto& each) { return each.home == wish_.home; });
  if (found == groups->members_.rend() && known == NcclGroups::most_groups) return;
  if (!groups->library_) groups->library_ = &NcclLibrary::of_settings();
  const NcclLibrary& library = *groups->library_;
  groups->note([&](NcclReport& report) {
    const bool is_there = library.absence().empty();
    if (!is_there || known == 0) report.absence = library.absence();
    report.library = library.name();
    report.version = is_there ? library.version_text() : "";
  });
  if (!library.absence().empty() || turn_is_taken.exchange(true)) return;
  has_turn_ = true;
  library_ = &library;
  terms.nccl = {static_cast<std::uint32_t>(library.version()),
                static_cast<std::uint32_t>(groups->members_.rend() - found)};
}

NcclUse::~NcclUse() {
  if (has_turn_) turn_is_taken = false;
}

bool NcclUse::is_chosen(Collective& collective) {
  if (!collective.nccl_offer().is_with_all()) return false;
  NcclGroups::Member* const member = joined(collective);
  if (member == nullptr || !member->group) return false;
  if (communicator_.by() == CollectiveBy::chosen) {
    auto& ways = member->ways[static_cast<std::size_t>(wish_.kind)];
    if (!ways) ways = measured(collective, *member->group);
    if (!ways->is_nccl_faster(wish_.bytes)) return false;
  }
  member_ = member;
  return true;
}

// Ranks that mean different groups, or none, join anew.
NcclGroups::Member* NcclUse::joined(Collective& collective) {
  std::vector<NcclGroups::Member>& members = communicator_.nccl()->members_;
  if (const std::uint32_t group = collective.nccl_offer().group(); group != 0)
    return &members[group - 1];
  if (members.size() == NcclGroups::most_groups) return nullptr;
  members.push_back({wish_.home, {}, {}});
  if (members.size() == 1)
    collective.endpoint().on_close([groups = std::weak_ptr(communicator_.nccl())] {
      if (const auto here = groups.lock()) here->end();
    });
  if (!join(collective, members.back())) members.back().group.reset();
  return &members.back();
}

void NcclUse::refuse(const std::string& why) {
  communicator_.nccl()->note([&](NcclReport& report) { report.absence = why; });
  log(LogLevel::warning, "messages: collectives of GPUs go without NCCL: " + why);
}

bool NcclUse::join(Collective& collective, NcclGroups::Member& member) {
  struct Words {
    NcclPlace place;
    NcclId id;
    std::uint64_t has_id = 0;
  };
  const int size = collective.size();
  Words own{{device_number_of(wish_.home), process_id()}, {}, 0};
  if (collective.rank() == 0) own.has_id = library_->unique_id(own.id) == nccl_success ? 1 : 0;
  std::vector<Words> all(static_cast<std::size_t>(size));
  collective.all_to_all(&own, 0, all.data(), sizeof own);
  std::vector<NcclPlace> places;
  for (const Words& each : all) places.push_back(each.place);
  if (!may_join(places) || all.front().has_id == 0) {
    refuse(all.front().has_id == 0 ? "it gives no number for a group"
                                   : "it needs a GPU and a process of its own for each rank");
    return false;
  }
  // Each tells all others how it went; the first failure ends the others' waiting.
  enum Outcome : char { none, has_joined, has_failed };
  std::vector<char> outcomes(static_cast<std::size_t>(size), none);
  std::vector<TransferPtr> open;
  for (int rank = 0; rank < size; ++rank)
    if (rank != collective.rank())
      open.push_back(collective.start_receive(rank, &outcomes[static_cast<std::size_t>(rank)], 1));
  const std::vector<TransferPtr> told = open;
  std::string why;
  try {
    const auto another_failed = [&] {
      for (int rank = 0, i = 0; rank < size; ++rank)
        if (rank != collective.rank() && has_ended(told[static_cast<std::size_t>(i++)]) &&
            outcomes[static_cast<std::size_t>(rank)] == has_failed)
          return true;
      return false;
    };
    bool is_joined = false;
    try {
      member.group = std::make_unique<NcclGroup>(*library_, wish_.home, size, collective.rank(),
                                                 all.front().id);
      const auto until = std::chrono::steady_clock::now() + longest_join;
      bool is_late = false;
      collective.await_work(
          [&] {
            is_late = std::chrono::steady_clock::now() >= until;
            return (is_joined = member.group->is_joined()) || is_late || another_failed();
          },
          "NCCL didn't join the ranks");
      if (!is_joined && is_late) why = "it didn't join the ranks in a minute";
    } catch (const Error& error) {
      if (error.code() != Errc::unavailable) throw;
      why = error.what();
    }
    char& outcome = outcomes[static_cast<std::size_t>(collective.rank())];
    outcome = is_joined ? has_joined : has_failed;
    if (!is_joined && member.group) member.group->abandon();
    for (int rank = 0; rank < size; ++rank)
      if (rank != collective.rank()) open.push_back(collective.start_send(rank, &outcome, 1));
  } catch (...) {
    collective.withdraw(open);
    throw;
  }
  collective.wait(open);
  if (std::ranges::all_of(outcomes, [](char each) { return each == has_joined; })) return true;
  refuse(why.empty() ? "another rank couldn't join" : why);
  return false;
}

void NcclUse::run(Collective& collective, NcclGroup& group, const NcclCall& call, const void* from,
                  void* into) {
  try {
    group.start(call, from, into);
    collective.await_work([&] { return group.has_ended(); }, "NCCL's collective wasn't over");
  } catch (const Error& error) {
    group.abandon();
    if (error.code() != Errc::unavailable) throw;
    // A rank that is lost is noticed by NCCL, too, and sometimes earlier.
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    collective.await_work([&] { return std::chrono::steady_clock::now() >= until; }, "");
    throw;
  } catch (...) {
    group.abandon();
    throw;
  }
}

void NcclUse::carry_out(Collective& collective, const MessageBuffer& from,
                        const MessageBuffer& into) {
  const auto& ways = member_->ways[static_cast<std::size_t>(wish_.kind)];
  collective.note_nccl(library_->version_text(), ways ? ways->seconds(ways->nccl, wish_.bytes) : 0);
  run(collective, *member_->group, {wish_.kind, wish_.root, wish_.bytes, *numbers_}, from.data,
      into.data);
  collective.note_moved();
  communicator_.nccl()->note([](NcclReport& report) { ++report.collectives; });
}

}  // namespace quadriga::message
