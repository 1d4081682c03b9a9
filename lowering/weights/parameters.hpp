// Where parameters are held: on which grids, in which layout, or which part by which device.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "lowering/blocks/blocks.hpp"
#include "lowering/stages/stages.hpp"

namespace stratagem::lowering {

/// Where one parameter of the plan is held. The devices of a grid hold it once, even if several
/// stages read it there.
struct Holding {
  placement::Layout layout;
  std::vector<placement::Grid> grids;  ///< distinct, by first device
  /// In place of layout and grids, if an irregular stage reads it: what each device holds.
  std::map<int, placement::Mask> masks;
  std::set<int> replicas;  ///< whose devices these are
};

/// How something of a weight is divided over devices that would all hold the whole of it.
struct Division {
  std::vector<int> axes;  ///< of the grid, as Operand::shards
  Bytes bytes;            ///< of the weight's type in the largest part; the whole without axes
};

/// A parameter on one device class, and the segments that read it there.
struct LocalHolding {
  const Holding* holding = nullptr;
  std::vector<int> segments;        ///< ascending
  placement::Grid grid;             ///< on which it lies here
  Bytes bytes;                      ///< on each device, where it is whole
  Division parameter;               ///< between micro-batches
  Division between_passes;          ///< of a micro-batch
  Division gradient;                ///< between micro-batches
  Division step;                    ///< what each device steps, and its states
  std::vector<std::int64_t> shape;  ///< of what each device has where it is whole
  double gradient_scale = 1;        ///< bytes of its gradient over its own
  /// Bytes of what is gathered for a pass over its own: of a copy that products read in another
  /// type, or 1.
  double gathered_scale = 1;
  bool stays_whole = false;  ///< too small for the plan to divide the parameter itself

  /// Does each device step only a part of what it has of the parameter?
  [[nodiscard]] bool steps_in_parts() const { return step.axes.size() > parameter.axes.size(); }
};

class Parameters {
 public:
  /// Throws InputError if two operators see different parts of a parameter. On irregular stages two
  /// devices may, if their parts do not overlap.
  Parameters(const strategies::Plan& plan, const Stages& stages, const Blocks& blocks);

  [[nodiscard]] const Holding& operator[](model::TensorId parameter) const {
    return holdings_.at(parameter);
  }
  /// The parameters of one device class.
  [[nodiscard]] const std::map<model::TensorId, LocalHolding>& on(int device_class) const {
    return on_class_[device_class];
  }

 private:
  void hold_on_replica(const strategies::Plan& plan, const Stages& stages, const Blocks& blocks,
                       int replica);
  void check_parts(const model::Graph& graph) const;

  std::map<model::TensorId, Holding> holdings_;
  std::vector<std::map<model::TensorId, LocalHolding>> on_class_;
};

}  // namespace stratagem::lowering
