// A space of plans of a small GPT, each of which is simulated in a blink.
#pragma once

#include <string>

#include "search/space.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::search {

/// Four GPUs of a DGX-2, eight samples; `keys` are the object "search", `strategy` the defaults'.
inline std::string small_space(const std::string& keys, const std::string& strategy = "{}",
                               const std::string& training = "") {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  return R"({
  "question": "Which is best?",
  "defaults": {
    "model": {"family": "gpt", "layers": 4, "hidden": 64, "heads": 4, "sequence": 32,)"
         R"( "vocabulary": 128},
    "cluster": {"preset": "dgx-2", "gpus": 4},
    "profile": ")" +
         shipped + R"(/profiles/v100-sxm3.json",
    "stack": ")" +
         shipped + R"(/stacks/megatron-2019.json",
    "training": {"global_batch": 8, "precision": "fp16", "optimizer": "adam")" +
         training + R"(},
    "strategy": )" +
         strategy + R"(
  },
  "search": )" +
         keys + "\n}\n";
}

inline Space read(const TemporaryFolder& folder, const std::string& text) {
  folder.write("space.json", text);
  return Space::read((folder.path() / "space.json").string());
}

}  // namespace stratagem::search
