// A run that keeps something in its servers' memory, or on their drives, for tests of what is told
// of it.
#pragma once

#include <filesystem>
#include <string>

#include "study/scenario.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem {

/// A GPT on a cluster with a strategy, both as a scenario writes them; its parameters fill up
/// evenly.
inline study::Scenario offloaded(const std::string& cluster, const std::string& strategy) {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  const TemporaryFolder folder;
  folder.write("a.json", R"({"question": "?", "runs": [{"name": "it", "model":
      {"family": "gpt", "layers": 2, "hidden": 64, "heads": 4, "sequence": 32, "vocabulary": 128},
      "cluster": )" + cluster +
                             R"(, "training": {"global_batch": 4, "micro_batch": 1,
      "precision": "fp16", "optimizer": "adam"}, "strategy": )" +
                             strategy + R"(, "profile": ")" + shipped +
                             R"(/profiles/v100-sxm3.json", "stack": ")" + shipped +
                             R"(/stacks/megatron-deepspeed-fp16.json"}]})");
  return study::read_scenario((folder.path() / "a.json").string());
}

}  // namespace stratagem
