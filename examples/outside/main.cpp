// Prints a run's prediction as JSON and as CSV; then what a mistake is answered with.
#include <iostream>
#include <stratagem/stratagem.hpp>

namespace {

constexpr const char* question = R"({
  "question": "How fast is Llama 3 8B on eight H100?",
  "runs": [{ "name": "fsdp",
    "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "dgx-h100", "gpus": 8 },
    "profile": "h100-sxm5", "stack": "llm-foundry",
    "training": { "global_batch": 8, "micro_batch": 1, "precision": "bf16", "optimizer": "adam" },
    "strategy": { "data": 8, "zero": 3, "recompute": "full" } }] })";

}  // namespace

int main() {
  using namespace stratagem;
  const api::Predicted predicted = api::simulate({.text = question});
  std::cout << predicted.json << predicted.csv;
  try {
    api::simulate({.text = question}, {.set = {"tensor=three"}});
  } catch (const api::Error& error) {
    std::cerr << error.what() << " [" << error.found << "]\n";
  }
}
