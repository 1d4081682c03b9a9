// Residency: where weights, gradients, optimizer states and activations are kept between uses.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stratagem::strategies {

/// A rule of residency: the three primitives on an identity between two uses of the same values.
/// op-assign says where they wait, op-trans over which axes they are divided meanwhile (each of the
/// ranks that would all hold the same has one part), op-order how early they come back. Without a
/// rule they wait where they are used, whole.
struct Keep {
  enum class What : std::uint8_t {
    parameters,
    gradients,    ///< of parameters, until their step; what is divided is reduced to its parts
    states,       ///< of the optimizer; where and in which parts steps run is said by Steps
    activations,  ///< what a forward pass leaves to the backward pass
    checkpoints   ///< what recomputed groups read
  };
  /// The shortest gap between uses in which the rule holds; it holds in all longer ones, too, for
  /// which there is no rule of their own. Gradients are used once a micro-batch, states once an
  /// iteration. Between passes is between those of a micro-batch.
  enum class Between : std::uint8_t { passes, micro_batches, iterations };
  enum class Where : std::uint8_t {
    device,
    stage,  ///< the devices of another stage, each part on the device with the same coordinates
    peers,  ///< of stages that the lowering chooses, by links, then by idle memory
    host,   ///< memory of the device's server
    drives  ///< of the server, behind its memory
  };

  What what = What::parameters;
  /// Of activations, what these segments leave (ascending), or what these forward cells leave
  /// (stage and micro-batch). Rules for anything else hold for all of it.
  std::vector<int> segments = {};
  std::vector<std::pair<int, int>> cells = {};
  Between between = Between::passes;
  Where where = Where::device;
  int stage = 0;  ///< for Where::stage
  std::vector<std::string> divided = {};
  /// What comes back does so after the segment `ahead` + 1 places before its reader has run, so
  /// that of `ahead` + 1 segments it is there at once; likewise a segment runs only when what the
  /// segment `ahead` + 1 places before it has sent away is gone. Counted are segments with such
  /// rules. nullopt: 0.
  std::optional<int> ahead = {};
  /// Parameters with fewer elements on a device than this stay whole there.
  int at_least = 0;
  std::string said = {};          ///< where the user said it, as errors name it
  std::string said_divided = {};  ///< and where that it is divided
};

/// The rules of residency of a plan.
class Residency {
 public:
  /// Adds a rule. A second one for the same values says what the first one left open; of
  /// parameters one between the same uses, and one for longer gaps is a rule of its own. Throws
  /// InputError for what contradicts another rule, or what no rule can say.
  void keep(Keep rule);

  [[nodiscard]] const std::vector<Keep>& rules() const { return rules_; }
  /// The rule for parameters, gradients, states or checkpoints in a gap; nullptr without one.
  [[nodiscard]] const Keep* of(Keep::What what,
                               Keep::Between gap = Keep::Between::micro_batches) const;
  /// Notes where the user said what is not known of rules so far.
  void note_said(const std::string& path);
  /// Where the user said something of any of these; "": nowhere.
  [[nodiscard]] std::string said(const std::vector<Keep::What>& of) const;
  /// The rule for what a segment's forward pass leaves: its own, else that for checkpoints, if they
  /// leave the device. Or for what a forward cell leaves.
  [[nodiscard]] const Keep* of_segment(int segment) const;
  [[nodiscard]] const Keep* of_cell(int stage, int micro_batch) const;
  /// Do activations or checkpoints of segments leave the device? Those of cells?
  [[nodiscard]] bool keeps_segments() const;
  [[nodiscard]] bool keeps_cells() const { return !of_cell_.empty(); }
  /// The `ahead` of all that leaves segments.
  [[nodiscard]] int ahead_of_segments() const;

 private:
  void complete(Keep& known, const Keep& rule);
  void check_parameters() const;
  void keep_activations(const Keep& rule);
  void expect_one_window() const;

  std::vector<Keep> rules_;
  std::map<int, std::size_t> of_segment_;               ///< index of the rule
  std::map<std::pair<int, int>, std::size_t> of_cell_;  ///< by stage and micro-batch
};

}  // namespace stratagem::strategies
