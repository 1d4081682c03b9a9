// Builds the operators of a cross-entropy.
#include "model/zoo/cross_entropy.hpp"

namespace stratagem::model {

TensorId cross_entropy(Builder& build, TensorId logits, const std::string& places,
                       const std::string& classes) {
  const std::vector<std::int64_t> wide = build[logits].shape;
  const std::vector<std::int64_t> rows(wide.begin(), wide.end() - 1);
  const auto row = [&](const std::string& name) {
    return build.tensor("loss." + name, rows, DataType::fp32, Role::statistic);
  };
  const std::string all = places + " " + classes;
  const std::string reduced = all + "+";
  const TensorId labels = build.tensor("labels", rows, DataType::int64, Role::input);
  const TensorId maximum = row("maximum");
  build.add(OpKind::row_max, "loss.maximum", reduced + " -> " + places, {logits}, {maximum},
            Combine::maximum);
  const TensorId exponentials =
      build.tensor("loss.exponentials", wide, DataType::fp32, Role::activation);
  build.add(OpKind::exponential, "loss.exponentials", all + ", " + places + " -> " + all,
            {logits, maximum}, {exponentials});
  const TensorId sum = row("sum");
  build.add(OpKind::row_sum, "loss.sum", reduced + " -> " + places, {exponentials}, {sum});
  const TensorId picked = row("picked");
  build.add(OpKind::pick, "loss.picked", reduced + ", " + places + " -> " + places,
            {logits, labels}, {picked});
  const TensorId loss = build.tensor("loss", rows, DataType::fp32, Role::activation);
  build.add(OpKind::cross_entropy, "loss",
            all + ", " + places + ", " + places + ", " + places + ", " + all + " -> " + places,
            {exponentials, sum, picked, labels, logits}, {loss});
  return loss;
}

TensorId fused_cross_entropy(Builder& build, TensorId logits, const std::string& places,
                             const std::string& classes) {
  const std::vector<std::int64_t> wide = build[logits].shape;
  const std::vector<std::int64_t> rows(wide.begin(), wide.end() - 1);
  const auto row = [&](const std::string& name) {
    return build.tensor("loss." + name, rows, DataType::fp32, Role::statistic);
  };
  const std::string all = places + " " + classes;
  const std::string reduced = all + "+";
  const TensorId labels = build.tensor("labels", rows, DataType::int64, Role::input);
  const TensorId maximum = row("maximum");
  build.add(OpKind::row_max, "loss.maximum", reduced + " -> " + places, {logits}, {maximum},
            Combine::maximum);
  const TensorId sum = row("sum");
  build.add(OpKind::row_sum, "loss.sum", reduced + ", " + places + " -> " + places,
            {logits, maximum}, {sum});
  const TensorId picked = row("picked");
  build.add(OpKind::pick, "loss.picked", reduced + ", " + places + " -> " + places,
            {logits, labels}, {picked});
  const TensorId loss = build.tensor("loss", rows, DataType::fp32, Role::activation);
  const TensorId gradient =
      build.tensor("loss.logits_gradient", wide, build[logits].type, Role::activation);
  std::string annotation = all;
  for (int operand = 0; operand < 4; ++operand) annotation += ", " + places;
  build.add(OpKind::cross_entropy, "loss", annotation + " -> " + places + ", " + all,
            {logits, maximum, sum, picked, labels}, {loss, gradient});
  return loss;
}

}  // namespace stratagem::model
