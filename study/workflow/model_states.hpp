// What the models of a workflow keep on each GPU from phase to phase.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "placement/mask.hpp"
#include "study/run.hpp"
#include "study/simulate.hpp"

namespace stratagem::study {

/// The part of a parameter that a device has.
struct ParameterPart {
  std::vector<std::int64_t> shape;  ///< of the whole parameter
  model::DataType type = model::DataType::fp16;
  placement::Mask mask;
  Bytes bytes;       ///< of all that the mask sees, or of a shard
  double share = 1;  ///< of what the mask sees
  friend bool operator==(const ParameterPart&, const ParameterPart&) = default;
};

/// Of a simulated run, by device.
struct ModelStates {
  std::vector<Bytes> kept;    ///< parameters, gradients and optimizer states between iterations
  std::vector<Bytes> caches;  ///< of keys and values
  std::vector<Bytes> used;    ///< at most: these and all else, as DeviceMemory::used
  std::vector<std::map<std::string, ParameterPart>> parameters;  ///< by name
};

ModelStates states_of(const Run& run, const Simulated& simulated);

/// A parameter that one of two models has and the other lacks, or has in another shape or type; ""
/// if there is none: then they are one model.
std::string different_parameter(const ModelStates& one, const ModelStates& other);

/// A parameter of one model of which two runs keep different parts on a device; "" if there is
/// none.
std::string divided_differently(const ModelStates& one, const ModelStates& other);

}  // namespace stratagem::study
