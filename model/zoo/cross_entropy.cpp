// Builds the operators of a cross-entropy.
#include "model/zoo/cross_entropy.hpp"

#include <cstdint>
#include <vector>

namespace stratagem::model {
namespace {

/// The operators that both forms have, of logits with a row for every place.
class Loss {
 public:
  Loss(Builder& build, TensorId logits, const std::string& places, const std::string& classes,
       const LossNames& names)
      : build_(build),
        name_(names.loss),
        logits_(logits),
        places_(places),
        all_(places + " " + classes),
        wide_(build[logits].shape),
        rows_(wide_.begin(), wide_.end() - 1),
        labels_(build.tensor(names.labels, rows_, DataType::int64, Role::input)),
        maximum_(row("maximum")) {
    build_.add(OpKind::row_max, name_ + ".maximum", all_ + "+ -> " + places_, {logits_}, {maximum_},
               Combine::maximum);
  }

  TensorId in_parts() && {
    const TensorId exponentials = wide("exponentials", DataType::fp32);
    build_.add(OpKind::exponential, name_ + ".exponentials", all_ + ", " + places_ + " -> " + all_,
               {logits_, maximum_}, {exponentials});
    const TensorId sum = row("sum");
    build_.add(OpKind::row_sum, name_ + ".sum", all_ + "+ -> " + places_, {exponentials}, {sum});
    const TensorId picked = pick();
    const TensorId result = loss();
    build_.add(OpKind::cross_entropy, name_,
               all_ + by_row(3) + ", " + all_ + by_row(1) + " -> " + places_,
               {exponentials, sum, picked, labels_, logits_, maximum_}, {result});
    return result;
  }

  TensorId fused() && {
    const TensorId sum = row("sum");
    build_.add(OpKind::row_sum, name_ + ".sum", all_ + "+, " + places_ + " -> " + places_,
               {logits_, maximum_}, {sum});
    const TensorId picked = pick();
    const TensorId result = loss();
    const TensorId gradient = wide("logits_gradient", build_[logits_].type);
    build_.add(OpKind::cross_entropy, name_, all_ + by_row(4) + " -> " + places_ + ", " + all_,
               {logits_, maximum_, sum, picked, labels_}, {result, gradient});
    return result;
  }

 private:
  TensorId row(const std::string& name) {
    return build_.tensor(name_ + "." + name, rows_, DataType::fp32, Role::statistic);
  }
  TensorId wide(const std::string& name, DataType type) {
    return build_.tensor(name_ + "." + name, wide_, type, Role::activation);
  }
  TensorId loss() { return build_.tensor(name_, rows_, DataType::fp32, Role::activation); }
  TensorId pick() {
    const TensorId picked = row("picked");
    build_.add(OpKind::pick, name_ + ".picked", all_ + "+, " + places_ + " -> " + places_,
               {logits_, labels_}, {picked});
    return picked;
  }
  /// Terms of so many operands with a number for every place.
  [[nodiscard]] std::string by_row(int operands) const {
    std::string terms;
    for (int i = 0; i < operands; ++i) terms += ", " + places_;
    return terms;
  }

  Builder& build_;
  std::string name_;
  TensorId logits_;
  std::string places_, all_;
  std::vector<std::int64_t> wide_, rows_;
  TensorId labels_, maximum_;
};

}  // namespace

TensorId cross_entropy(Builder& build, TensorId logits, const std::string& places,
                       const std::string& classes, const LossNames& names) {
  return Loss(build, logits, places, classes, names).in_parts();
}

TensorId fused_cross_entropy(Builder& build, TensorId logits, const std::string& places,
                             const std::string& classes, const LossNames& names) {
  return Loss(build, logits, places, classes, names).fused();
}

}  // namespace stratagem::model
