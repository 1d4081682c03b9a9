// What the models of a workflow keep on each GPU from phase to phase.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "placement/mask.hpp"
#include "study/run.hpp"
#include "study/simulate.hpp"

namespace stratagem::study {

/// The part of a parameter that a device has.
struct HeldPart {
  placement::Mask mask;
  Bytes bytes;
  friend bool operator==(const HeldPart&, const HeldPart&) = default;
};

/// Of a simulated run, by device.
struct Held {
  std::vector<Bytes> kept;    ///< parameters, gradients and optimizer states between iterations
  std::vector<Bytes> used;    ///< at most, with all that stands beside the program's buffers
  std::vector<Bytes> caches;  ///< of these
  std::vector<std::map<std::string, HeldPart>> parameters;  ///< by name
};

Held held_by(const Run& run, const Simulated& simulated);

/// A parameter of which two runs keep different parts on a device; "" if there is none. A run may
/// have parameters that the other lacks, as models with other heads do.
std::string divided_differently(const Held& one, const Held& other);

}  // namespace stratagem::study
