// A scenario that simulates in a blink, and a folder to put it in.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/catch.hpp"

namespace stratagem {

/// An empty folder that lasts as long as this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("stratagem_test_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directory(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream stream(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  [[nodiscard]] bool has(const std::string& name) const {
    return std::filesystem::exists(path_ / name);
  }

 private:
  std::filesystem::path path_;
};

/// Two runs of a small GPT on one DGX-2, one alone and one on 2 x 2 GPUs, with shipped constants.
inline std::string small_scenario() {
  const std::string shipped = std::filesystem::absolute("scenarios").string();
  return R"({
  "question": "Does it work?",
  "baseline": "alone",
  "defaults": {
    "model": {"family": "gpt", "layers": 2, "hidden": 64, "heads": 4, "sequence": 32,)"
         R"( "vocabulary": 128},
    "cluster": {"preset": "dgx-2", "gpus": 4},
    "profile": ")" +
         shipped + R"(/profiles/v100-sxm3.json",
    "stack": ")" +
         shipped +
         R"(/stacks/megatron-2019.json",
    "training": {"global_batch": 8, "micro_batch": 2, "precision": "fp16", "optimizer": "adam"}
  },
  "runs": [
    {"name": "alone", "cluster": {"gpus": 1}, "strategy": {"recompute": "full"}},
    {"name": "four", "strategy": {"tensor": 2, "data": 2, "overlap_gradients": true,)"
         R"( "bucket": "25 MiB"}}
  ]
}
)";
}

/// `text` with `part`, which must stand there once, replaced.
inline std::string with(std::string text, const std::string& part, const std::string& other) {
  const std::size_t place = text.find(part);
  REQUIRE(place != std::string::npos);
  REQUIRE(text.find(part, place + 1) == std::string::npos);
  return text.replace(place, part.size(), other);
}

}  // namespace stratagem
