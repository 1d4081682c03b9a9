// A figure's name tells its unit, and what values it may have.
#include "study/figures.hpp"

#include <optional>
#include <string>
#include <utility>

#include "base/quantity.hpp"

namespace stratagem::study {
namespace {

/// A figure with the unit that its name asks for.
double read_figure(const std::string& name, const JsonReader& value) {
  if (name == "iteration_time") return value.quantity<Seconds>().value;
  if (name.ends_with("tflops_per_gpu")) return value.quantity<FlopsPerSecond>().value / 1e12;
  if (name == "fits") return value.boolean() ? 1 : 0;
  if (concerns_memory(name)) return value.quantity<Bytes>().value;
  return value.number();
}

/// Refuses a key that names no figure.
void check_figure(const JsonReader& reader, const std::string& key) {
  std::string list;
  for (const std::string& name : figure_names) list += (list.empty() ? "" : ", ") + name;
  check_word(reader, key, figure_names, "a figure: " + list);
}

}  // namespace

bool concerns_memory(const std::string& figure) {
  return figure.starts_with("peak_") || figure == "resident" || figure == "fits";
}

std::vector<Measured> read_measured(const JsonReader& reader) {
  std::vector<Measured> result;
  for (const std::string& key : reader.keys()) {
    const JsonReader figure = reader.at(key);
    check_figure(figure, key);
    const std::string provenance =
        figure.at("provenance").one_of({"published", "from memory", "measured"});
    const double value = read_figure(key, figure.at("value"));
    if (value <= 0 && key != "fits") figure.at("value").fail("a figure above 0");
    if (key == "scaling_efficiency" && value > 2)
      figure.at("value").fail("a fraction, such as 0.8");
    const auto fitted = figure.find("fitted");
    const auto device = figure.find("device");
    if (device && (!concerns_memory(key) || key == "fits"))
      device->fail("no device: only bytes are one device's", device->dump());
    result.push_back(
        {.name = key,
         .value = value,
         .gates = provenance != "from memory",
         .provenance = provenance,
         .source = figure.at("source").text(),
         .fitted = fitted && fitted->boolean(),
         .device = device ? std::optional(static_cast<int>(device->at_least(0))) : std::nullopt});
  }
  return result;
}

std::vector<Expectation> read_expectations(const JsonReader& reader) {
  std::vector<Expectation> result;
  for (const std::string& key : reader.keys()) {
    const JsonReader bound = reader.at(key);
    Expectation expectation{
        .name = key, .at_least = -1e300, .at_most = 1e300, .because = bound.at("because").text()};
    if (key == "fits") {
      expectation.at_least = expectation.at_most = bound.at("value").boolean() ? 1 : 0;
    } else {
      check_figure(bound, key);
      const auto least = bound.find("at_least");
      const auto most = bound.find("at_most");
      if (!least && !most) bound.fail("the key \"at_least\", the key \"at_most\" or both");
      if (least) expectation.at_least = read_figure(key, *least);
      if (most) expectation.at_most = read_figure(key, *most);
      if (expectation.at_least > expectation.at_most) bound.fail("at_least not above at_most");
    }
    result.push_back(std::move(expectation));
  }
  return result;
}

}  // namespace stratagem::study
