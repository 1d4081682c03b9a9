// Predicted beside measured, as Markdown.
#include <fmt/format.h>

#include <iterator>

#include "report/figure_text.hpp"
#include "report/report.hpp"

namespace stratagem::report {
namespace {

std::string in_words(std::string figure) {
  if (figure == "tflops_per_gpu") return "TFLOP/s per GPU, recomputation counted";
  if (figure == "model_tflops_per_gpu") return "TFLOP/s per GPU of the model";
  for (char& letter : figure) {
    if (letter == '_') letter = ' ';
  }
  return figure;
}

}  // namespace

std::string accuracy(const std::vector<study::Result>& results) {
  std::string text;
  for (const study::Result& result : results) {
    for (const study::Figure& figure : result.figures) {
      if (!figure.measured) continue;
      fmt::format_to(std::back_inserter(text), "| {} | {} | {} | {} | {} | {} | {}{} |\n",
                     result.run->name, result.outcome.gpus, in_words(figure.name),
                     value_text(figure.name, *figure.measured),
                     figure.predicted ? value_text(figure.name, *figure.predicted) : "",
                     error_text(figure), figure.gates ? "" : "from memory: ", figure.source);
    }
  }
  if (text.empty()) return text;
  return "| run | GPUs | figure | measured | predicted | error | source |\n"
         "|---|--:|---|--:|--:|--:|---|\n" +
         text;
}

}  // namespace stratagem::report
