// Searchers for how a plan divides its model. A file each defines a function that returns its
// Searcher, and all.cpp names that function.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"
#include "study/run.hpp"

namespace stratagem::search {

/// One of the parts: a stage, or a slice of the tokens.
struct Part {
  std::string what;  ///< "layers 0-18"
  int replicas = 1;
  Seconds time;                      ///< as the searcher's objective counts it
  std::optional<Bytes> memory = {};  ///< of a device
};

struct Proposal {
  Json strategy;            ///< keys and values that say it, over those of the run
  std::vector<Part> parts;  ///< in order
  Seconds objective;
};

/// [1, 2, 3]
template <typename Numbers>
Json list_of(const Numbers& numbers) {
  Json list = Json::array();
  for (const auto number : numbers) list.push(number);
  return list;
}

struct Searcher {
  std::string name;       ///< as `partition --by` has it
  std::string key;        ///< of the strategy, that it sets; a space may give `name` as its value
  std::string parts;      ///< what its parts are: "stage"
  std::string objective;  ///< what it makes least, in words
  /// No other division of its space has a smaller objective. Nothing if none fits into memory.
  /// Throws InputError for runs that it cannot divide.
  std::optional<Proposal> (*propose)(const study::Run& run);
  /// Every division of its space, as Proposal::strategy, whether or not it fits. Throws InputError
  /// if there are more than `most`.
  std::vector<Json> (*all)(const study::Run& run, std::size_t most);
};

/// All of them.
const std::vector<Searcher>& searchers();

}  // namespace stratagem::search
