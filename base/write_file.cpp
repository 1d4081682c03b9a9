// Writes a draft and renames it.
#include "base/write_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/gzip.hpp"
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

constexpr const char* expected = "a file that can be written";

[[noreturn]] void lost_output(int reason) {
  throw InputError("standard output", "", expected, std::generic_category().message(reason));
}

void write_as_it_is(const std::string& file, const std::string& text) {
  if (is_standard_output(file)) {
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size()) lost_output(errno);
    return finish_standard_output();
  }
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
  throw InputError(file, "", expected, error.message());
}

}  // namespace

bool is_standard_output(const std::string& file) {
  constexpr std::array names{"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
  return std::ranges::find(names, file) != names.end();
}

void finish_standard_output() {
  errno = 0;
  if (std::fflush(stdout) != 0) lost_output(errno);
  if (std::ferror(stdout) != 0) lost_output(EIO);  // before: what it was is gone
}

void write_file(const std::string& file, const std::string& text) {
  if (file.ends_with(".gz")) return write_as_it_is(file, gzipped(text));
  write_as_it_is(file, text);
}

}  // namespace stratagem
