// Looks beside the scenario first.
#include "study/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/input_error.hpp"

namespace stratagem::study {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path>& chosen_library() {
  static std::optional<fs::path> chosen;
  return chosen;
}

/// The names of the JSON files in a folder.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code nothing_there;
  for (const auto& entry : fs::directory_iterator(folder, nothing_there)) {
    if (entry.path().extension() == ".json") found.push_back(entry.path().stem().string());
  }
  std::ranges::sort(found);
  return found;
}

/// `share/stratagem` below a folder that a file lies in: PREFIX/bin/stratagem, or
/// PREFIX/lib/x86_64-linux-gnu/libstratagem.so.
std::optional<fs::path> installed_with(const fs::path& file) {
  fs::path folder = file.parent_path();
  for (int up = 0; up < 3; ++up) {
    folder = folder.parent_path();
    const fs::path installed = folder / "share" / "stratagem";
    if (std::error_code unknown; fs::is_directory(installed, unknown)) return installed;
  }
  return std::nullopt;
}

/// The file that this code was loaded from, the program or libstratagem.
fs::path own_file() {
  Dl_info known;
  std::error_code unknown;
  if (dladdr(reinterpret_cast<const void*>(&own_file), &known) != 0) {
    const fs::path file = fs::canonical(known.dli_fname, unknown);
    if (file.filename().string().starts_with("lib")) return file;
  }
  return fs::read_symlink("/proc/self/exe", unknown);
}

}  // namespace

fs::path library() {
  if (chosen_library()) return *chosen_library();
  if (const char* named = std::getenv("STRATAGEM_LIBRARY"); named != nullptr && *named != '\0') {
    if (!fs::is_directory(named)) throw InputError("STRATAGEM_LIBRARY", "", "a folder", named);
    return named;
  }
  return installed_with(own_file()).value_or(STRATAGEM_SCENARIOS);
}

void use_library(const std::string& folder) {
  if (!fs::is_directory(folder)) throw InputError("--library", "", "a folder", folder);
  chosen_library() = folder;
}

std::vector<std::string> names_in_library(const std::string& folder) {
  return files_in(library() / folder);
}

std::string file_of(const JsonReader& reader, const std::string& folder) {
  const std::string name = reader.text();
  const fs::path beside = fs::path(reader.file()).parent_path();
  if (name.ends_with(".json")) {
    std::string file = (beside / name).string();
    if (!fs::exists(file)) reader.fail("a file that exists", file);
    return file;
  }
  std::vector<std::string> known = files_in(beside / folder);
  if (std::ranges::count(known, name) > 0) return (beside / folder / (name + ".json")).string();
  const std::vector<std::string> shared = names_in_library(folder);
  known.insert(known.end(), shared.begin(), shared.end());
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  if (known.empty()) {
    reader.fail("a folder " + (beside / folder).string() + " beside the scenario, or in " +
                library().string() +
                " (--library or STRATAGEM_LIBRARY name another), or a path that ends in "
                ".json");
  }
  return (library() / folder / (reader.one_of(known) + ".json")).string();
}

}  // namespace stratagem::study
