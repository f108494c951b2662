// SPDX-License-Identifier: BSD-3-Clause
// src/message/posting.cpp: transfers of postings, and back for what waits for them.
#include "message/posting.h"

namespace quadriga::message {

TransferPtr transfer_of(const Posting& message, bool sends) {
  auto transfer = std::make_shared<MessageTransfer>();
  transfer->sends = sends;
  transfer->operation = message.operation;
  transfer->place = message.place;
  transfer->peer = message.peer;
  transfer->tag = message.tag;
  transfer->context = message.context;
  transfer->group = message.group;
  transfer->keep = message.keep;
  transfer->order = message.order;
  if (!sends && transfer->place.flat() == nullptr) transfer->place.layout.check_receives();
  return transfer;
}

Posting posting_of(const MessageTransfer& transfer) {
  Posting posting;
  posting.peer = transfer.peer;
  posting.tag = transfer.tag;
  posting.context = transfer.context;
  posting.group = transfer.group;
  posting.operation = transfer.operation;
  return posting;
}

}  // namespace quadriga::message
