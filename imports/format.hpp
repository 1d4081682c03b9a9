// A format of another program: what its files say of a run in our words. A file each defines a
// function that returns its Format, and all.cpp names that function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.hpp"

namespace stratagem::imports {

/// What cannot be said in a scenario, or is said otherwise.
struct Note {
  std::string what;  ///< as it was written: "--tp-comm-overlap"
  std::string why;
};

/// What files say. The four objects are as those of a run, empty where nothing is said.
struct Settings {
  Json model = Json::object();
  Json training = Json::object();
  Json strategy = Json::object();
  Json cluster = Json::object();
  /// Micro-batches of a data rank in an iteration, where a file says this in place of a batch.
  std::optional<int> accumulation = {};
  bool passes_keys = false;  ///< can attention run in a ring? Else it reads gathered keys
  /// Stacks that could stand for the framework, the best first; empty: nothing is said.
  std::vector<std::string> stacks = {};
  std::vector<Note> left_out = {};          ///< acts on time or memory, and is not in the run
  std::vector<Note> assumed = {};           ///< is in the run, though nothing says so
  std::vector<std::string> no_matter = {};  ///< acts on neither time nor memory
};

struct Format {
  std::string name;     ///< "megatron"
  std::string summary;  ///< one line for --help
  /// Is a file of this kind?
  bool (*is)(const std::string& text);
  /// Throws InputError for what cannot be read. `file` is for messages.
  Settings (*read)(const std::string& text, const std::string& file);
};

/// All of them, in the order in which they are tried.
const std::vector<Format>& formats();

/// What a file says, read by the format of that name, or by the first that knows it. Throws
/// InputError.
Settings read_settings(const std::string& file, const std::string& format = "");

}  // namespace stratagem::imports
