// The groups of ranks that a rank talks to.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/input_error.hpp"
#include "execute/engine.hpp"
#include "kernels/ranks/communicator.hpp"
#include "program/program.hpp"

namespace stratagem::execute {

/// Groups are known by their numbers in tasks. All ranks make them, in one order.
template <typename T>
class Groups {
 public:
  /// All of which outlive it.
  Groups(const program::Program& program, kernels::Communicator& world, Engine<T>& engine)
      : program_(program),
        of_device_(program.devices[world.rank()].groups),
        engine_(engine),
        posts_(program.communicators.size()) {
    for (const program::Communicator& each : program.communicators) {
      const bool member = std::ranges::count(each.ranks, world.rank()) > 0;
      communicators_.push_back(member ? world.group(each.ranks) : nullptr);
    }
  }

  [[nodiscard]] kernels::Communicator& operator[](int number) const {
    expects(of_device_[number] >= 0 && communicators_[of_device_[number]] != nullptr,
            "a rank talks to groups that it is in");
    return *communicators_[of_device_[number]];
  }
  [[nodiscard]] const std::vector<int>& ranks(int number) const {
    return program_.communicators[of_device_[number]].ranks;
  }
  /// Made when the group has its first collective, which all of its ranks come to.
  [[nodiscard]] Post<T>& post(int number) {
    kernels::Communicator& group = (*this)[number];
    std::unique_ptr<Post<T>>& post = posts_[of_device_[number]];
    if (post == nullptr) post = engine_.post(group, packing_);
    return *post;
  }

 private:
  const program::Program& program_;
  const std::vector<int>& of_device_;
  Engine<T>& engine_;
  std::vector<std::unique_ptr<kernels::Communicator>> communicators_;  ///< null: not in it
  Packing<T> packing_;
  std::vector<std::unique_ptr<Post<T>>> posts_;  ///< null: not asked for yet
};

}  // namespace stratagem::execute
