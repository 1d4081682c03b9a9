// Looks at files before it writes them.
#include "commands/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/input_error.hpp"
#include "base/write_file.hpp"

namespace stratagem::commands {

void check_outputs(const std::vector<Output>& outputs, const std::vector<std::string>& inputs) {
  std::vector<std::filesystem::path> taken;
  for (const std::string& input : inputs) taken.push_back(std::filesystem::weakly_canonical(input));
  for (const Output& output : outputs) {
    const std::filesystem::path path = std::filesystem::weakly_canonical(output.file);
    if (std::ranges::find(taken, path) != taken.end())
      throw InputError(output.file, "", "a file of its own for every output", "one in use");
    taken.push_back(path);
    std::error_code ignored;  // what is still missing cannot be opened
    std::filesystem::create_directories(path.parent_path(), ignored);
    const bool existed = std::filesystem::exists(path);
    const bool can_open = std::ofstream(output.file, std::ios::binary | std::ios::app).is_open();
    if (!can_open) throw InputError(output.file, "", "a file that can be written", "");
    if (!existed) std::filesystem::remove(path);
  }
}

void write_below(const std::vector<Output>& outputs) {
  if (!outputs.empty()) fmt::print("\n");
  write(outputs);
}

void write(const std::vector<Output>& outputs) {
  for (const Output& output : outputs) {
    write_file(output.file, output.text);
    fmt::print("wrote {}{}\n", output.file, output.note);
  }
}

std::string bytes_of(const std::string& file) {
  if (std::filesystem::is_directory(file)) return "";
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace stratagem::commands
