// The versions of the weights that overlapping iterations read.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "execute/engine.hpp"
#include "execute/value.hpp"
#include "model/tensor.hpp"

namespace stratagem::execute {

/// Parameters of which a device keeps several versions, each in a place of its own. Version v is
/// there after v steps, and is gone when the places have been gone through once.
template <typename T>
class WeightVersions {
 public:
  /// The places of a parameter, of which the first one holds it.
  void keep(model::TensorId parameter, std::vector<Shared<T>> places) {
    kept_[parameter] = {.places = std::move(places), .steps = 0};
  }
  [[nodiscard]] bool any() const { return !kept_.empty(); }
  [[nodiscard]] bool has(model::TensorId parameter) const { return kept_.contains(parameter); }

  /// A version. Expects that it is there.
  [[nodiscard]] const Shared<T>& at(model::TensorId parameter, std::uint64_t version) const {
    const Kept& kept = kept_.at(parameter);
    expects(version <= kept.steps && kept.steps - version < kept.places.size(),
            "a version of a weight is kept until all that read it have run");
    return kept.places[version % kept.places.size()];
  }

  /// What is to be stepped next: a copy of the newest version, in the place of the oldest.
  const Shared<T>& begin_step(Engine<T>& engine, model::TensorId parameter) {
    Kept& kept = kept_.at(parameter);
    const Shared<T>& newest = at(parameter, kept.steps++);
    const Shared<T>& next = at(parameter, kept.steps);
    engine.copy(*newest, *next);
    return next;
  }

 private:
  struct Kept {
    std::vector<Shared<T>> places;
    std::uint64_t steps = 0;
  };
  std::map<model::TensorId, Kept> kept_;
};

}  // namespace stratagem::execute
