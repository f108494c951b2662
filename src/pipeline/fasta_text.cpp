// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/fasta_text.cpp: finds titles and letters in blocks of a FASTA text.
#include "pipeline/fasta_text.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace quadriga {
namespace {

enum class Kind : std::uint8_t { wrong, letter, blank };

constexpr std::array<Kind, 256> kinds_of_bytes() {
  std::array<Kind, 256> found{};
  for (int c = 'A'; c <= 'Z'; ++c) found[static_cast<std::size_t>(c)] = Kind::letter;
  for (int c = 'a'; c <= 'z'; ++c) found[static_cast<std::size_t>(c)] = Kind::letter;
  for (const char c : {'*', '-'}) found[static_cast<std::size_t>(c)] = Kind::letter;
  for (const char c : {' ', '\t', '\r', '\n'}) found[static_cast<std::size_t>(c)] = Kind::blank;
  return found;
}
constexpr std::array<Kind, 256> kinds = kinds_of_bytes();

Kind kind_of(char byte) { return kinds[static_cast<unsigned char>(byte)]; }

/// Ends a name.
bool is_space(char byte) { return kind_of(byte) == Kind::blank || byte == '\v' || byte == '\f'; }

/// For messages: what isn't printed everywhere, by its number.
std::string printable(char byte) {
  const bool is_ascii = byte >= ' ' && byte <= '~';
  return is_ascii ? std::string(1, byte)
                  : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

/// Behind a chunk's last record as much is read in vain.
constexpr std::size_t indexed_block_bytes = std::size_t{1} << 16;

std::string reason(int error) { return std::system_category().message(error); }

}  // namespace

FastaText::FastaText(std::string path, Read read, std::size_t block_bytes)
    : path_(std::move(path)), read_(std::move(read)), block_(block_bytes) {
  if (!begins_record())
    fail(Errc::io, path_ + ": is no FASTA file: it doesn't begin with '>'" +
                       (path_.ends_with(".gz") ? "; decompress it first" : ""));
}

/// Whether there is something to be read in the block, which is another one if need be.
bool FastaText::has_bytes() {
  if (at_ < end_) return true;
  at_ = 0;
  end_ = read_(block_);
  return end_ > 0;
}

/// What the block has of a line, with its end if that is there; it is passed. Not empty.
std::span<const char> FastaText::rest_of_line() {
  const char* const first = block_.data() + at_;
  const void* const end = std::memchr(first, '\n', end_ - at_);
  const std::size_t count =
      end ? static_cast<std::size_t>(static_cast<const char*>(end) - first) + 1 : end_ - at_;
  at_ += count;
  return {first, count};
}

/// At the beginning of a line: passes the '>' of a title, if it has one.
bool FastaText::begins_record() {
  has_record_ = has_bytes() && block_[at_] == '>';
  if (has_record_) ++at_;
  return has_record_;
}

void FastaText::restart() {
  at_ = end_ = 0;
  bool is_at_begin = true;
  while (true) {
    if (is_at_begin && begins_record()) return;
    if (!has_bytes()) return;
    is_at_begin = rest_of_line().back() == '\n';
  }
}

std::string FastaText::title() {
  std::string found;
  while (has_bytes() && (found.empty() || found.back() != '\n')) {
    const auto part = rest_of_line();
    found.append(part.data(), part.size());
  }
  return found;
}

void FastaText::add_letters(FastaRecords& into) {
  bool is_any_wrong = false;
  bool is_at_begin = true;
  while (!(is_at_begin && begins_record()) && has_bytes()) {
    const auto part = rest_of_line();
    const std::size_t before = into.letters.size();
    into.letters.resize(before + part.size());
    char* out = into.letters.data() + before;
    for (const char byte : part) {
      const Kind kind = kind_of(byte);
      *out = byte;
      out += kind != Kind::blank;
      is_any_wrong |= kind == Kind::wrong;
    }
    into.letters.resize(static_cast<std::size_t>(out - into.letters.data()));
    is_at_begin = part.back() == '\n';
  }
  check(into, is_any_wrong);
  into.starts.push_back(static_cast<std::int64_t>(into.letters.size()));
}

/// The last record.
void FastaText::check(const FastaRecords& records, bool is_any_wrong) const {
  const std::string_view letters =
      std::string_view(records.letters).substr(static_cast<std::size_t>(records.starts.back()));
  const std::string record = path_ + ": record '" + records.names.back() + "' ";
  if (letters.empty()) fail(Errc::io, record + "is empty");
  if (!is_any_wrong) return;
  const auto wrong = std::ranges::find(letters, Kind::wrong, kind_of);
  fail(Errc::io, fmt::format("{}has '{}' at position {}; expected letters, '*' or '-'", record,
                             printable(*wrong), wrong - letters.begin() + 1));
}

FastaRecords FastaText::take(std::int64_t most) {
  FastaRecords found;
  found.starts.push_back(0);
  while (has_record_ && static_cast<std::int64_t>(found.names.size()) < most) {
    const std::string line = title();
    const auto first = std::ranges::find_if_not(line, is_space);
    found.names.emplace_back(first, std::find_if(first, line.end(), is_space));
    add_letters(found);
  }
  return found;
}

FastaFile::FastaFile(const std::string& path, std::size_t block_bytes) : path_(path) {
  require_regular(path);
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (!file_) fail(Errc::io, path + ": can't be read: " + reason(errno));
  // Blocks are read at once.
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
  const auto read = [this](std::span<char> into) {
    const std::size_t count = std::fread(into.data(), 1, into.size(), file_.get());
    if (count < into.size() && std::ferror(file_.get()))
      fail(Errc::io, path_ + ": can't be read: " + reason(errno));
    return count;
  };
  text_ = std::make_unique<FastaText>(path, read, block_bytes);
}

void FastaFile::seek(std::int64_t place) {
  if (std::fseek(file_.get(), place, SEEK_SET) != 0)
    fail(Errc::io, path_ + ": can't be read: " + reason(errno));
  text_->restart();
}

IndexedFasta::IndexedFasta(const std::string& path, std::int64_t records, std::string index)
    : file_(path, indexed_block_bytes),
      index_(path, std::move(index)),
      records_(static_cast<std::size_t>(records)) {}

std::size_t IndexedFasta::count_of(std::size_t chunk) const {
  return std::min(records_, index_.records() - chunk * records_);
}

std::vector<double> IndexedFasta::sizes() const {
  std::vector<double> found;
  for (std::size_t chunk = 0; chunk < chunks(); ++chunk) {
    const std::size_t count = count_of(chunk);
    auto bytes = static_cast<double>((count + 1) * sizeof(std::int64_t));
    for (std::size_t i = 0; i < count; ++i)
      bytes += static_cast<double>(index_.letters(chunk * records_ + i));
    found.push_back(bytes);
  }
  return found;
}

FastaRecords IndexedFasta::read(std::size_t chunk) {
  const std::size_t first = chunk * records_;
  const std::size_t count = count_of(chunk);
  FastaRecords found;
  {
    const std::lock_guard lock(mutex_);
    file_.seek(index_.begin(first));
    found = file_.text().take(static_cast<std::int64_t>(count));
  }
  for (std::size_t i = 0; i < count; ++i)
    if (i >= found.names.size() || found.names[i] != index_.name(first + i) ||
        found.starts[i + 1] - found.starts[i] != index_.letters(first + i))
      index_.fail_at(first + i);
  return found;
}

}  // namespace quadriga
