// {"op-assign": "stage(i)", "device": "4*i"}: where operators stand whose parts have coordinates 0.
#include <optional>
#include <utility>

#include "strategies/language/device_formula.hpp"
#include "strategies/language/expression.hpp"
#include "strategies/language/operator_groups.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

/// A number, or the text of an expression.
std::string formula(const JsonReader& reader) {
  return reader.is_number() ? std::to_string(reader.between(0, 1'000'000)) : reader.text();
}

/// The device of all operators of a copy of a stage, nullopt where they stand on several.
std::optional<int> device_of_stage(const Plan& plan, int stage, int copy) {
  std::optional<int> device;
  for (const int segment : plan.stages[stage]) {
    for (const model::OpId op : plan.graph().segments[segment].forward) {
      const int here = plan.placement(op).first_devices[copy];
      const bool listed = !plan.placement(op).listed.empty();
      if (listed || (device && *device != here)) return std::nullopt;
      device = here;
    }
  }
  return device;
}

Primitive assigned(const Plan& plan, const std::string& selector, Field device, int copy) {
  Primitive result = primitive("op-assign", selector, {std::move(device)});
  if (plan.copies().most() > 1) result.fields.push_back(field("copy", copy));
  return result;
}

/// Operators of a stage on several devices.
void write_apart(const Plan& plan, int stage, int copy, std::vector<Primitive>& result) {
  OperatorGroups<int> groups(plan);
  for (const int segment : plan.stages[stage]) {
    for (const model::OpId op : plan.graph().segments[segment].forward) {
      if (plan.placement(op).listed.empty()) groups.add(plan.placement(op).first_devices[copy], op);
    }
  }
  for (const auto& [device, selector] : groups.selectors())
    result.push_back(assigned(plan, selector, field("device", device), copy));
}

/// Stages `first` to `last`, whose devices a formula of i tells.
void write_stages(const Plan& plan, const DeviceFormula& stages, int copy,
                  std::vector<Primitive>& result) {
  if (stages.first == stages.last) {
    const std::string stage = "stage(" + std::to_string(stages.first) + ")";
    result.push_back(assigned(plan, stage, field("device", stages.device), copy));
    return;
  }
  result.push_back(assigned(plan, "stage(i)", field("device", stages.formula), copy));
  if (stages.first > 0 || stages.last + 1 < static_cast<int>(plan.stages.size())) {
    result.back().fields.push_back(field(
        "where", std::to_string(stages.first) + " <= i && i <= " + std::to_string(stages.last)));
  }
}

}  // namespace

/// A name in stage(...) takes all values from 0 to S-1 for which "where" holds.
void read_device(PlanBuilder& builder, const JsonReader& reader) {
  const JsonReader selector = reader.at("op-assign");
  if (const auto list = reader.find("devices")) list->fail("\"device\" or \"devices\", not both");
  const int copies = builder.plan().copies().most();
  const auto copy =
      reader.find("copy") ? static_cast<int>(reader.at("copy").between(0, copies - 1)) : 0;
  const auto variables = stage_variables(selector.text(), selector.path());
  if (variables.size() > 1) selector.fail("one name besides S in stage(...)");
  std::vector<std::string> names = {"S"};
  names.insert(names.end(), variables.begin(), variables.end());
  Expression device(formula(reader.at("device")), reader.path() + "/device");
  device.bind(names);
  Expression where(reader.find("where") ? reader.at("where").text() : "1",
                   reader.path() + "/where");
  where.bind(names);
  const auto stages = static_cast<std::int64_t>(builder.plan().stages.size());
  for (std::int64_t i = 0; i < (variables.empty() ? 1 : stages); ++i) {
    std::vector<std::int64_t> values = {stages};
    if (!variables.empty()) values.push_back(i);
    if (where.evaluate(values) == 0) continue;
    const std::int64_t at = device.evaluate(values);
    if (at < 0 || at > 1'000'000)
      reader.at("device").fail("a device from 0 to 1000000", std::to_string(at));
    std::vector<std::pair<std::string, std::int64_t>> known;
    if (!variables.empty()) known.emplace_back(variables.front(), i);
    for (const model::OpId op : builder.operators(selector, known))
      builder.assign(op, static_cast<int>(at), copy, reader.path());
  }
}

std::vector<Primitive> write_devices(const Plan& plan) {
  std::vector<Primitive> result;
  for (int copy = 0; copy < plan.copies().most(); ++copy) {
    std::vector<std::optional<int>> devices;
    for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage) {
      const bool there = copy < plan.copies().of(stage);
      devices.push_back(there ? device_of_stage(plan, stage, copy) : std::nullopt);
      if (there && !devices.back()) write_apart(plan, stage, copy, result);
    }
    for (const DeviceFormula& stages : device_formulas(devices))
      write_stages(plan, stages, copy, result);
  }
  return result;
}

}  // namespace stratagem::strategies
