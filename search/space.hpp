// A space of plans: keys of a scenario, and the values that each of them may take.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "base/options.hpp"
#include "strategies/parallel/options.hpp"
#include "study/reading/changes.hpp"
#include "study/reading/named_presets.hpp"
#include "study/reading/places.hpp"

namespace stratagem::search {

/// A key that varies.
struct Dimension {
  std::string object;        ///< of a run: "strategy", "training" or "cluster"
  std::string key;           ///< in that object
  std::vector<Json> values;  ///< at least one; null leaves the key out
  bool declared = false;     ///< by the option as worth trying, not listed by the user
  bool searched = false;     ///< is one of them the name of a searcher?
};

/// All combinations of values, numbered from 0; the last dimension varies fastest.
class Space {
 public:
  /// Reads the keys "question", "defaults" and "search" of a scenario file. The latter is an object
  /// of lists, or of "any" for the values that an option declares as worth trying:
  ///     {"tensor": [1, 2, 4], "schedule": "any", "micro_batch": [1, 2]}
  /// Its keys are those of a strategy, "micro_batch", and "gpus", which may also be {"at_most": N}:
  /// N, N/2, N/4 ... GPUs. A value may be the name of a searcher (partition/searcher.hpp) that
  /// finds the key's value for each plan: {"layers_per_stage": ["balanced"]}. A key of which
  /// neither the search nor the defaults say anything is "any", if its option declares values.
  /// Throws InputError.
  /// `changes`, of one value each, stand over the defaults. They may not set a key that the search
  /// varies.
  static Space read(const std::string& file, const std::vector<study::KeyValues>& changes = {});
  static Space read(const JsonReader& scenario, const std::vector<study::KeyValues>& changes = {}) {
    study::check_places(scenario);
    return Space(study::with_named_presets(scenario), changes);
  }

  [[nodiscard]] std::size_t size() const;
  /// The settings of a combination, as in a run of a scenario, without what searchers find. As many
  /// data ranks as GPUs are left for, unless the space or the defaults name their number. Throws
  /// InputError where they are no whole number.
  [[nodiscard]] Json settings(std::size_t number) const;
  /// The name of the searcher that finds what is missing; none if nothing is. Throws InputError for
  /// two searchers, since each would divide a model that the other has not divided.
  [[nodiscard]] std::optional<std::string> searcher(std::size_t number) const;
  /// Is a combination left out, since a key that takes the values worth trying has another than the
  /// first where its option says that only that one is worth it?
  [[nodiscard]] bool leaves_out(std::size_t number) const;
  /// Throws InputError for keys of the file that nobody asked for, once a run has been read.
  void finish() const {
    scenario_.finish();
    defaults_.finish();  // also keys that are set over them
  }
  /// The values that vary: "tensor 8, pipeline 4, zero 1".
  [[nodiscard]] std::string words(std::size_t number) const;

  [[nodiscard]] const std::string& file() const { return defaults_.file(); }
  [[nodiscard]] const std::string& question() const { return question_; }
  [[nodiscard]] const JsonReader& defaults() const { return defaults_; }
  /// For errors of the defaults: where they were read, and what was set over them.
  [[nodiscard]] study::Origin origin() const { return {file(), defaults_.path(), {}, set_}; }
  [[nodiscard]] const std::vector<Dimension>& dimensions() const { return dimensions_; }
  /// Degrees that no combination has, since neither `search` nor the defaults name them.
  [[nodiscard]] std::vector<std::string> degrees_left_alone() const;

 private:
  Space(const JsonReader& scenario, const std::vector<study::KeyValues>& changes);
  void add(const std::string& object, const std::string& key, const std::vector<Json>& worth,
           const JsonReader& space);
  void add_gpus(const JsonReader& space);
  [[nodiscard]] std::vector<Json> worth_here(const OptionText& option, bool is_degree) const;
  [[nodiscard]] std::vector<Json> numbers_of_gpus() const;
  [[nodiscard]] const Json& value(std::size_t number, std::size_t dimension) const;
  [[nodiscard]] strategies::Options options(const Json& settings) const;
  [[nodiscard]] int data_ranks(const Json& settings) const;
  [[nodiscard]] std::size_t place(std::size_t number, std::size_t dimension) const;

  JsonReader scenario_;
  std::string question_;
  JsonReader defaults_;
  std::vector<study::SetKey> set_;
  std::vector<Dimension> dimensions_;
};

/// Of the object "search", for editors.
Json schema_of_search();
/// Its keys and the values that are worth trying, as a table in Markdown.
std::string table_of_search();

}  // namespace stratagem::search
