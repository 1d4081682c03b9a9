// Looks at files before it writes them.
#include "commands/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/input_error.hpp"
#include "base/read_file.hpp"
#include "base/write_file.hpp"
#include "commands/all.hpp"

namespace stratagem::commands {

namespace {

/// The file itself, whatever it is called; of a pipe, which lies in no folder, its name.
std::filesystem::path place_of(const std::string& file) {
  if (is_standard_output(file)) return "-";
  std::error_code nowhere;
  std::filesystem::path path = std::filesystem::weakly_canonical(file, nowhere);
  return nowhere ? std::filesystem::path(file) : path;
}

/// A pipe or a device: opening it to see whether it can be written would already be felt.
bool is_stream(const std::string& file) {
  std::error_code ignored;
  return is_standard_output(file) || std::filesystem::is_other(file, ignored);
}

}  // namespace

void check_outputs(const std::vector<Output>& outputs, const std::vector<std::string>& inputs) {
  std::vector<std::filesystem::path> taken;
  for (const std::string& input : inputs) taken.push_back(place_of(input));
  for (const Output& output : outputs) {
    const std::filesystem::path path = place_of(output.file);
    if (std::ranges::find(taken, path) != taken.end())
      throw InputError(output.file, "", "a file of its own for every output", "one in use");
    taken.push_back(path);
    if (is_stream(output.file)) continue;
    std::error_code ignored;  // what is still missing cannot be opened
    std::filesystem::create_directories(path.parent_path(), ignored);
    const bool existed = std::filesystem::exists(path);
    const bool can_open = std::ofstream(output.file, std::ios::binary | std::ios::app).is_open();
    if (!can_open)
      throw InputError(output.file, "", "a file that can be written",
                       output.file.empty()                   ? "no name"
                       : std::filesystem::is_directory(path) ? "a folder"
                                                             : "");
    if (!existed) std::filesystem::remove(path);
  }
}

std::FILE* for_people(const std::vector<Output>& outputs) {
  return std::ranges::any_of(outputs, &is_standard_output, &Output::file) ? stderr : stdout;
}

void write_below(const std::vector<Output>& outputs) {
  if (!std::ranges::all_of(outputs, &is_standard_output, &Output::file))
    fmt::print(for_people(outputs), "\n");
  write(outputs);
}

void write(const std::vector<Output>& outputs) {
  for (const Output& output : outputs) {
    write_file(output.file, output.text);
    if (!is_standard_output(output.file))
      fmt::print(for_people(outputs), "wrote {}{}\n", output.file, output.note);
  }
}

int conclude(const std::vector<std::string>& refused, const std::vector<std::string>& broken) {
  for (const auto* lines : {&refused, &broken}) {
    for (const std::string& line : *lines) fmt::print(stderr, "{}\n", line);
  }
  return !refused.empty() ? bad_input : !broken.empty() ? check_failed : done;
}

std::string bytes_of(const std::string& file) {
  try {
    return read_file(file);
  } catch (const InputError&) {
    return "";
  }
}

}  // namespace stratagem::commands
