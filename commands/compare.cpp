// `stratagem compare`: two traces of one run, task by task.
#include <fmt/format.h>

#include "base/input_error.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/outputs.hpp"
#include "report/comparison.hpp"

namespace stratagem::commands {

int compare(const std::vector<std::string>& line) {
  Options options(
      "stratagem compare",
      "Hold what simulate predicted of a run to what execute measured of it: two traces, "
      "written with --trace.");
  options.text("predicted", "trace of simulate");
  options.text("measured", "trace of execute");
  options.text("json", "write the comparison as JSON");
  options.text("trace", "write both as one trace, device by device");
  options.positional({"predicted", "measured"}, "PREDICTED MEASURED");
  const Arguments asked(options, line);
  if (asked.helped()) return done;
  const report::Trace predicted = report::read_trace(asked.required("predicted"));
  const report::Trace measured = report::read_trace(asked.required("measured"));
  if (predicted.of.provenance != "predicted" && measured.of.provenance == "predicted")
    throw InputError(predicted.file, "/otherData/provenance", "the predicted trace first",
                     predicted.of.provenance);
  const report::Comparison comparison = report::compare(predicted, measured);
  std::vector<Output> outputs;
  if (asked.has("json"))
    outputs.push_back({asked.text("json"), report::to_json(comparison).text(2) + "\n"});
  if (asked.has("trace"))
    outputs.push_back({asked.text("trace"), report::overlay(predicted, measured),
                       " (open it in https://ui.perfetto.dev)"});
  check_outputs(outputs, {predicted.file, measured.file});
  fmt::print("{}", report::to_text(comparison));
  write_below(outputs);
  return done;
}

}  // namespace stratagem::commands
