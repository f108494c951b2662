// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/incoming.cpp: looks whether an envelope has arrived, and puts payloads where they belong.
#include "mpi/incoming.h"

#include <quadriga/error.h>

#include <algorithm>
#include <cstring>

#include "message/pack/stream.h"
#include "mpi/device_buffers.h"

namespace quadriga::mpi {

bool is_on_device(const void* buffer, std::int64_t count, MPI_Datatype datatype) {
  if (device_buffers.load(std::memory_order_relaxed) == nullptr || count <= 0 ||
      datatype == MPI_DATATYPE_NULL)
    return false;
  if (on_device(buffer)) return true;
  // Its lowest element tells, which MPI knows without the layout: to find that out would take
  // longer than a message of a type that is made for it.
  MPI_Aint first = 0, extent = 0;
  return PMPI_Type_get_true_extent(datatype, &first, &extent) == MPI_SUCCESS && first != 0 &&
         on_device(static_cast<const std::byte*>(buffer) + first);
}

Incoming::Incoming(void* buffer, std::int64_t count, MPI_Datatype datatype)
    : into_{buffer, count, nullptr}, datatype_(datatype) {
  if (count <= 0 || datatype == MPI_DATATYPE_NULL) return;
  const bool device = is_on_device(buffer, count, datatype);
  if (!device && (receives_parts() || type_at(datatype).ends_with_element(envelope_bytes))) return;
  keep_type();
  const std::int64_t bytes = into_.type->bytes() * count;
  require(bytes <= most_count, "this receive has 2 GiB at most");
  bounce_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes) + 1);
  bounce_count_ = static_cast<WideCount>(bytes);
}

void Incoming::outlive_type() {
  if (into_.type || into_.count <= 0 || datatype_ == MPI_DATATYPE_NULL) return;
  if (!type_at(datatype_).is_lasting()) keep_type();
}

int Incoming::unpack(const std::byte* packed, std::int64_t bytes) noexcept {
  try {
    const auto place = into_.place();
    if (bytes > place.layout.bytes()) return MPI_ERR_TRUNCATE;
    move(bytes_at(packed, bytes), place);
    return MPI_SUCCESS;
  } catch (...) {
    return code_of_exception();
  }
}

int Incoming::fetch_into(const MpiEnvelope& envelope, MPI_Status& status) noexcept {
  std::int64_t bytes = 0;
  const int code = fetch(envelope, into_, bytes);
  set_bytes(status, code == MPI_ERR_TRUNCATE ? into_.type->bytes() * into_.count : bytes);
  return code;
}

int Incoming::finish_taken(MPI_Status& status) noexcept {
  try {
    const std::int64_t bytes = bytes_in(status);
    if (bytes != envelope_bytes) return unpack(bounce_.get(), bytes);
    keep_type();
    if (!into_.type) return MPI_SUCCESS;
    MpiEnvelope envelope{};
    if (bounce_) {
      std::memcpy(&envelope, bounce_.get(), sizeof envelope);
    } else {
      const auto place = into_.place();
      message::Packer(place.layout, place.data)
          .pack(0, std::as_writable_bytes(std::span(&envelope, 1)));
    }
    if (envelope.is_valid()) return fetch_into(envelope, status);
    return bounce_ ? unpack(bounce_.get(), bytes) : MPI_SUCCESS;
  } catch (...) {
    return code_of_exception();
  }
}

int Incoming::finish_early(const MpiEnvelope& content, MPI_Status& status) noexcept {
  try {
    keep_type();
    if (content.is_valid()) return fetch_into(content, status);
    return unpack(reinterpret_cast<const std::byte*>(&content), envelope_bytes);
  } catch (...) {
    return code_of_exception();
  }
}

}  // namespace quadriga::mpi
