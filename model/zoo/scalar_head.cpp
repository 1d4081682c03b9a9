// Builds the heads of values and rewards, and their losses.
#include "model/zoo/scalar_head.hpp"

#include <string>
#include <vector>

#include "model/operator_kinds.hpp"

namespace stratagem::model {
namespace {

/// The product of rows with one trained column; `rows` names their dimensions.
TensorId scalar_head(Builder& build, TensorId x, const std::string& rows) {
  const DataType type = build[x].type;
  const TensorId column = build.parameter("value.weight", {1, build[x].shape.back()}, type);
  std::vector<std::int64_t> shape = build[x].shape;
  shape.back() = 1;
  const TensorId y = build.tensor("value", shape, type, Role::activation);
  build.add(OpKind::contraction, "value", rows + " k+, one^ k+ -> " + rows + " one^", {x, column},
            {y});
  return y;
}

}  // namespace

TensorId last_token(Builder& build, TensorId x) {
  const std::vector<std::int64_t> shape = build[x].shape;
  const TensorId y =
      build.tensor("last_token.out", {shape[0], shape[2]}, build[x].type, Role::activation);
  build.add(operator_named("last_token"), "last_token", "b s^ h -> b h", {x}, {y});
  return y;
}

TensorId loss_of_values(Builder& build, TensorId x) {
  const TensorId values = scalar_head(build, x, "b s");
  const std::vector<std::int64_t> shape = build[values].shape;
  const TensorId returns = build.tensor("returns", shape, DataType::fp32, Role::input);
  const TensorId loss = build.tensor("loss", shape, DataType::fp32, Role::activation);
  build.add(operator_named("squared_error"), "loss", "b s one^, b s one^ -> b s one^",
            {values, returns}, {loss});
  return loss;
}

TensorId loss_of_rewards(Builder& build, TensorId x, std::int64_t answers) {
  const TensorId rewards = scalar_head(build, last_token(build, x), "b");
  const TensorId loss =
      build.tensor("loss", {build[x].shape[0] / answers}, DataType::fp32, Role::activation);
  build.add(operator_named("pairwise_loss"), "loss", "(b answers^) one^ -> b", {rewards}, {loss});
  return loss;
}

}  // namespace stratagem::model
