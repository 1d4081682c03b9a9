// A draft and its renaming.
#include "base/write_file.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/input_error.hpp"

namespace stratagem {
namespace {

std::error_code written(const std::string& file, const std::string& text) {
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  return {out ? 0 : errno, std::generic_category()};
}

}  // namespace

void write_file(const std::string& file, const std::string& text) {
  std::error_code ignored;
  const bool plain =
      !std::filesystem::exists(file, ignored) || std::filesystem::is_regular_file(file, ignored);
  const std::string target =
      plain ? std::filesystem::weakly_canonical(file, ignored).string() : file;
  const std::string draft = plain ? target + ".part" : file;
  std::error_code error = written(draft, text);
  if (plain && !error) std::filesystem::rename(draft, target, error);
  if (!error) return;
  if (plain && std::filesystem::is_regular_file(draft, ignored))
    std::filesystem::remove(draft, ignored);
  throw InputError(file, "", "a file that can be written", error.message());
}

}  // namespace stratagem
