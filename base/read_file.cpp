// Checks what a name refers to before it reads.
#include "base/read_file.hpp"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/gzip.hpp"
#include "base/input_error.hpp"

namespace stratagem {
namespace {

constexpr std::uintmax_t most = 1U << 30U;

[[noreturn]] void refuse(const std::string& file, const std::string& found) {
  throw InputError(file, "", "a file that can be read", found);
}

[[noreturn]] void refuse_size(const std::string& file) {
  throw InputError(file, "", "a file of at most 1 GiB", "more");
}

}  // namespace

std::string read_file(const std::string& file) {
  std::error_code none;
  const std::filesystem::file_status status = std::filesystem::status(file, none);
  if (std::filesystem::is_directory(status)) refuse(file, "a folder");
  if (std::filesystem::is_character_file(status) || std::filesystem::is_block_file(status))
    refuse(file, "a device");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(file, std::generic_category().message(errno));
  const bool regular = std::filesystem::is_regular_file(status);
  if (regular && std::filesystem::file_size(file, none) > most) refuse_size(file);
  std::string text;
  std::string piece(1U << 16U, '\0');
  while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())),
         stream.gcount() > 0) {
    text.append(piece, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most) refuse_size(file);
  }
  if (!is_gzipped(text)) return text;
  std::optional<std::string> unpacked = unzipped(text, most);
  if (!unpacked) refuse(file, "a file of gzip that is broken");
  if (unpacked->size() > most) refuse_size(file);
  return std::move(*unpacked);
}

}  // namespace stratagem
