// SPDX-License-Identifier: BSD-3-Clause
// src/message/packed_place.cpp: what is packed before a collective's steps, and unpacked after.
#include "message/packed_place.h"

namespace quadriga::message {
namespace {

bool is_alone(const MessageBuffer& place, const MessageBuffer* apart_from) {
  return apart_from == nullptr || !overlap(place, *apart_from);
}

}  // namespace

PackedPlace::PackedPlace(Collective& collective, const MessageBuffer& place, bool is_read,
                         const MessageBuffer* apart_from, const Home& home)
    : collective_(&collective), place_(place) {
  if (place.bytes() == 0) return;
  const bool is_there = home_of(place) == home && place.flat() != nullptr;
  if (is_there && is_alone(place, apart_from)) return;
  copy_ = Room(home, place.bytes());
  if (is_read) collective.copy(place, copy_.at(0, place.bytes()));
}

PackedPlace PackedPlace::part(Collective& collective, const MessageBuffer& place, bool is_read,
                              const MessageBuffer* apart_from) {
  if (place.on_device() && is_alone(place, apart_from)) return {collective, place};
  return {collective, place, is_read, apart_from};
}

MessageBuffer PackedPlace::at(std::int64_t offset, std::int64_t bytes) const {
  if (copy_.data() != nullptr) return copy_.at(offset, static_cast<std::size_t>(bytes));
  MessageBuffer found = bytes_place(place_.flat() == nullptr ? nullptr : place_.flat() + offset,
                                    static_cast<std::size_t>(bytes));
  found.port = place_.port;
  found.device = place_.device;
  return found;
}

// Other parts are bytes, and this one's other side may be one of them.
MessageBuffer PackedPlace::whole() const {
  if (copy_.data() != nullptr || !place_.on_device())
    return at(0, static_cast<std::int64_t>(place_.bytes()));
  MessageBuffer found = place_;
  const Layout& layout = place_.layout;
  found.layout = Layout::from_parts(layout.form(),
                                    ElementSignature(ElementType::bytes).repeated(place_.bytes()),
                                    layout.lower(), layout.extent());
  return found;
}

void PackedPlace::write_back() const {
  if (copy_.data() != nullptr) collective_->copy(copy_.at(0, place_.bytes()), place_);
}

Collective::PlaceOf places_of(const PackedPlace& input, const PackedPlace& output) {
  return [&](const StepPlace& place, std::int64_t bytes) {
    return (place.buffer == StepBuffer::input ? input : output).at(place.offset, bytes);
  };
}

}  // namespace quadriga::message
