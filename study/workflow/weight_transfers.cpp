// Finds for each phase where its weights come from.
#include "study/workflow/weight_transfers.hpp"

#include <algorithm>
#include <string>

#include "study/workflow/transfer.hpp"

namespace stratagem::study {
namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

[[noreturn]] void refuse(const SimulatedPhase& one, const std::string& why) {
  one.phase->json.fail("\"weights\" of another name: " + why, quoted(one.phase->weights));
}

class WeightTransfers {
 public:
  explicit WeightTransfers(std::vector<SimulatedPhase>& all) : all_(all) {}

  void add(SimulatedPhase& one) const {
    const SimulatedPhase* trainer = first(one, &trains);
    const SimulatedPhase& reference = reference_of(one, trainer);
    check_model(one, trainer == nullptr ? reference : *trainer);
    const std::string parameter = divided_differently(one.states, reference.states);
    one.copies = !parameter.empty();
    if (one.copies && (trainer == nullptr || trains(one))) {
      refuse(one, "phase " + quoted(reference.phase->name) + " divides them differently (" +
                      parameter + ")");
    }
    const bool elsewhere = trainer != nullptr && trainer->phase->pool != one.phase->pool;
    if (elsewhere && trains(one))
      refuse(one, "phase " + quoted(trainer->phase->name) + " trains them on another pool");
    const bool waits = one.copies || (elsewhere && &one == &reference);
    if (trainer == nullptr || !waits) return;
    one.outcome.weight_transfer = transfer_time({*trainer->phase->run, trainer->states},
                                                {*one.phase->run, one.states}, !elsewhere);
    one.outcome.time += one.outcome.weight_transfer;
  }

 private:
  /// The first phase of the same weights that a condition holds for.
  template <typename Accepts>
  [[nodiscard]] const SimulatedPhase* first(const SimulatedPhase& of,
                                            const Accepts& accepts) const {
    const auto found = std::ranges::find_if(all_, [&](const SimulatedPhase& other) {
      return other.phase->weights == of.phase->weights && accepts(other);
    });
    return found == all_.end() ? nullptr : &*found;
  }

  /// Of the phase's pool: the one that trains the weights, else the first one.
  [[nodiscard]] const SimulatedPhase& reference_of(const SimulatedPhase& of,
                                                   const SimulatedPhase* trainer) const {
    if (trainer != nullptr && trainer->phase->pool == of.phase->pool) return *trainer;
    return *first(of,
                  [&](const SimulatedPhase& other) { return other.phase->pool == of.phase->pool; });
  }

  static void check_model(const SimulatedPhase& one, const SimulatedPhase& other) {
    const std::string parameter = different_parameter(one.states, other.states);
    if (parameter.empty()) return;
    refuse(one, "phase " + quoted(other.phase->name) + " has another model, which differs in " +
                    parameter + "; or the same model in both runs, with the same \"lora\"");
  }

  std::vector<SimulatedPhase>& all_;
};

}  // namespace

void add_weight_transfers(std::vector<SimulatedPhase>& phases) {
  const WeightTransfers transfers(phases);
  for (SimulatedPhase& one : phases) transfers.add(one);
}

}  // namespace stratagem::study
