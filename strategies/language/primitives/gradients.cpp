// {"op-trans": "gradients", "overlap": true, "bucket": "25 MiB"}: how partial gradients are summed.
#include <array>
#include <cmath>
#include <utility>

#include "base/quantity_text.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {
namespace {

/// A size that reads back the same to the last byte.
std::string exact(Bytes bytes) {
  constexpr std::array<std::pair<const char*, double>, 3> units = {
      {{" GiB", 1024.0 * 1024 * 1024}, {" MiB", 1024.0 * 1024}, {" KiB", 1024.0}}};
  for (const auto& [unit, size] : units) {
    const double count = bytes.value / size;
    if (count >= 1 && count == std::floor(count))
      return std::to_string(static_cast<std::int64_t>(count)) + unit;
  }
  return Json(bytes.value).text() + " B";
}

}  // namespace

void read_gradients(PlanBuilder& builder, const JsonReader& reader) {
  static_cast<void>(reader.at("op-trans").one_of({"gradients"}));
  GradientReduction& gradients = builder.plan().gradients;
  builder.plan().said.gradients = reader.path();
  gradients.overlap = reader.at("overlap").boolean();
  if (const auto bucket = reader.find("bucket")) {
    gradients.bucket = bucket->quantity<Bytes>();
    if (gradients.bucket->value <= 0) bucket->fail("a size above zero, such as \"25 MiB\"");
  }
  if (const auto buffers = reader.find("buffers")) {
    if (!gradients.bucket) buffers->fail("a bucket beside it, of whose size they are");
    gradients.buffers = static_cast<int>(buffers->between(0, 16));
  }
}

std::vector<Primitive> write_gradients(const Plan& plan) {
  const GradientReduction& gradients = plan.gradients;
  if (!gradients.overlap && !gradients.bucket) return {};
  Primitive result =
      primitive("op-trans", "gradients",
                {{"overlap", Json(gradients.overlap),
                  gradients.overlap ? "overlap the backward pass" : "after the backward pass"}});
  if (gradients.bucket) result.fields.push_back(field("bucket", exact(*gradients.bucket)));
  if (gradients.buffers > 0) result.fields.push_back(field("buffers", gradients.buffers));
  return {result};
}

}  // namespace stratagem::strategies
