// zlib, told to speak gzip.
#include "base/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem {
namespace {

constexpr int as_gzip = 15 + 16;  // a window of 32 KiB; 16 more is gzip's frame (zlib.h)
constexpr std::size_t piece = 1U << 18U;

/// zlib's input is not const, though it is not changed.
Bytef* bytes_of(const std::string& text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // NOLINT
}

/// Offers what of a text comes next, `from` on: zlib counts up to 4 GiB.
void offer(z_stream& stream, const std::string& text, std::size_t& from) {
  const std::size_t size = std::min(piece, text.size() - from);
  stream.next_in = bytes_of(text) + from;
  stream.avail_in = static_cast<uInt>(size);
  from += size;
}

/// Room for one more piece at the end of a text.
void offer_room(z_stream& stream, std::string& text) {
  text.resize(text.size() + piece);
  stream.next_out = bytes_of(text) + text.size() - piece;
  stream.avail_out = piece;
}

}  // namespace

std::string gzipped(const std::string& text) {
  constexpr int memory_level = 8;  // zlib's default
  z_stream stream{};
  expects(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, as_gzip, memory_level,
                       Z_DEFAULT_STRATEGY) == Z_OK,
          "zlib has memory");
  std::string packed;
  std::size_t from = 0;
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (stream.avail_in == 0) offer(stream, text, from);
    offer_room(stream, packed);
    state = deflate(&stream, from == text.size() ? Z_FINISH : Z_NO_FLUSH);
    packed.resize(packed.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

bool is_gzipped(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::optional<std::string> unzipped(const std::string& bytes, std::size_t most) {
  z_stream stream{};
  expects(inflateInit2(&stream, as_gzip) == Z_OK, "zlib has memory");
  std::string text;
  std::size_t from = 0;
  int state = Z_OK;
  while (state == Z_OK && text.size() <= most) {
    if (stream.avail_in == 0) offer(stream, bytes, from);
    offer_room(stream, text);
    state = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
    const std::size_t read = from - stream.avail_in;
    if (state == Z_STREAM_END && is_gzipped(std::string_view(bytes).substr(read)))
      state = inflateReset(&stream);
  }
  inflateEnd(&stream);
  const bool is_whole = state == Z_STREAM_END || text.size() > most;
  return is_whole ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace stratagem
