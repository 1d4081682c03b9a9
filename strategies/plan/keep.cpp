// Adds rules one by one, each checked against what its subject allows and against those before.
#include "strategies/plan/keep.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::strategies {
namespace {

using What = Keep::What;
using Where = Keep::Where;

[[noreturn]] void refuse(const std::string& key, const std::string& expected) {
  throw InputError("", "/" + key, expected, "");
}

/// What can be said of a subject; docs/reference/residency.md has all of it.
struct Scope {
  What what;
  std::vector<Where> where;
  const char* places;     ///< the same in words
  const char* undivided;  ///< expected in place of axes; nullptr: there may be some
  bool ahead;
};

const Scope& scope_of(What what) {
  static const std::vector<Scope> scopes = {
      {What::parameters,
       {Where::device, Where::host, Where::drives},
       "the device, its host or its drives for parameters",
       nullptr,
       true},
      {What::gradients,
       {Where::device, Where::drives},
       "the device or drives for gradients; on the host those of steps wait that run there",
       nullptr,
       false},
      {What::states,
       {Where::drives},
       "drives for states; elsewhere they are where their steps are",
       "no axes for states, which are divided as their steps are",
       false},
      {What::activations,
       {Where::stage, Where::peers, Where::host, Where::drives},
       "a stage, peers, the host or its drives for activations",
       "no axes for activations, which are divided as their operators are",
       true},
      {What::checkpoints,
       {Where::device, Where::host, Where::drives},
       "the device, its host or its drives for checkpoints",
       nullptr,
       true}};
  return *std::ranges::find(scopes, what, &Scope::what);
}

void check(const Keep& rule) {
  const Scope& scope = scope_of(rule.what);
  if (std::ranges::count(scope.where, rule.where) == 0) refuse("where", scope.places);
  if (scope.undivided != nullptr && !rule.divided.empty()) refuse("divided", scope.undivided);
  if (!scope.ahead && rule.ahead) refuse("ahead", "parameters or activations to bring back");
  if (rule.at_least > 0 && rule.what != What::parameters)
    refuse("at least", "parameters, of which small ones stay whole");
  const bool once = rule.between == Keep::Between::iterations;
  if (once && rule.what != What::parameters && rule.what != What::states)
    refuse("between", "\"passes\" for what lives within an iteration");
  if (rule.between == Keep::Between::micro_batches && rule.what != What::parameters)
    refuse("between", "parameters, which alone are used by all passes of a micro-batch");
  if (once && rule.what == What::parameters && (rule.where != Where::device || rule.at_least > 0)) {
    refuse("between",
           "\"passes\" for parameters that leave the device, or of which small ones stay whole");
  }
  if (rule.what != What::activations && !(rule.segments.empty() && rule.cells.empty()))
    refuse("of", "activations, the only subject with parts of its own");
  const bool says = !rule.divided.empty() || rule.where != Where::device;
  if ((rule.what == What::gradients || rule.what == What::checkpoints) && !says)
    refuse("divided", "axes or a place, without which the rule says nothing");
}

/// Does it move what forward runs of segments leave?
bool leaves_segments(const Keep& rule) {
  const bool checkpoints = rule.what == What::checkpoints && rule.where != Where::device;
  return checkpoints || !rule.segments.empty();
}

}  // namespace

const Keep* Residency::of(What what, Keep::Between gap) const {
  const Keep* result = nullptr;
  for (const Keep& rule : rules_) {
    const bool holds = rule.between <= gap || what != What::parameters;
    const bool closer = result == nullptr || result->between < rule.between;
    if (rule.what == what && what != What::activations && holds && closer) result = &rule;
  }
  return result;
}

void Residency::note_said(const std::string& path) {
  for (Keep& rule : rules_) {
    if (rule.said.empty()) rule.said = path;
    if (rule.said_divided.empty() && !rule.divided.empty()) rule.said_divided = path;
  }
}

std::string Residency::said(const std::vector<What>& of) const {
  for (const Keep& rule : rules_)
    if (std::ranges::count(of, rule.what) > 0 && !rule.said.empty()) return rule.said;
  return "";
}

const Keep* Residency::of_segment(int segment) const {
  const auto found = of_segment_.find(segment);
  if (found != of_segment_.end()) return &rules_[found->second];
  const Keep* checkpoints = of(What::checkpoints);
  return checkpoints != nullptr && leaves_segments(*checkpoints) ? checkpoints : nullptr;
}

bool Residency::keeps_segments() const { return std::ranges::any_of(rules_, leaves_segments); }

int Residency::ahead_of_segments() const {
  const auto found = std::ranges::find_if(rules_, leaves_segments);
  return found == rules_.end() ? 0 : found->ahead.value_or(0);
}

const Keep* Residency::of_cell(int stage, int micro_batch) const {
  const auto found = of_cell_.find({stage, micro_batch});
  return found == of_cell_.end() ? nullptr : &rules_[found->second];
}

void Residency::keep(Keep rule) {
  check(rule);
  if (rule.what == What::activations) return keep_activations(rule);
  if (!rule.divided.empty()) rule.said_divided = rule.said;
  const auto same = [&](const Keep& one) {
    return one.what == rule.what && (rule.what != What::parameters || one.between == rule.between);
  };
  const auto known = std::ranges::find_if(rules_, same);
  if (known == rules_.end()) {
    rules_.push_back(std::move(rule));
  } else {
    complete(*known, rule);
  }
  check_parameters();
  expect_one_window();
}

/// Parameters that wait elsewhere, or in small parts, do so in all gaps but the shortest.
void Residency::check_parameters() const {
  using Between = Keep::Between;
  const Keep* often = of(What::parameters, Between::passes);
  const Keep* rest = of(What::parameters, Between::micro_batches);
  const Keep* once = of(What::parameters, Between::iterations);
  if (rest != nullptr && once != rest && rest->where != Where::device)
    refuse("between", "one rule for parameters that leave the device, which are not resident");
  if (often == nullptr || rest == nullptr || often == rest) return;
  if (often->where != Where::device || often->divided.empty())
    refuse("divided", "axes, on the device, for parameters between passes alone");
  if (often->at_least > 0) refuse("at least", "one size for parameters in all gaps");
  if (often->ahead && rest->ahead && often->ahead != rest->ahead)
    refuse("ahead", "one window for parameters in all gaps");
}

/// Takes over what the known rule leaves open.
void Residency::complete(Keep& known, const Keep& rule) {
  const auto take = [](auto& open, const auto& said, const auto& nothing, const char* key) {
    if (said == nothing || said == open) return;
    if (open != nothing) refuse(key, "one rule for all of these");
    open = said;
  };
  Keep all = known;
  take(all.between, rule.between, Keep::Between::passes, "between");
  take(all.where, rule.where, Where::device, "where");
  take(all.divided, rule.divided, decltype(all.divided){}, "divided");
  take(all.ahead, rule.ahead, decltype(all.ahead){}, "ahead");
  take(all.at_least, rule.at_least, 0, "at least");
  if (all.said.empty() || rule.where != Where::device) all.said = rule.said;
  if (!rule.divided.empty()) all.said_divided = rule.said_divided;
  check(all);
  known = all;
}

/// Every segment and every cell has one rule.
void Residency::keep_activations(const Keep& rule) {
  const std::string subject = rule.cells.empty() ? "of" : "cells";
  if (rule.segments.empty() == rule.cells.empty())
    refuse(subject, "segments or forward cells whose activations are kept");
  const bool lent = rule.where == Where::stage || rule.where == Where::peers;
  if (!rule.cells.empty() && (!lent || rule.ahead))
    refuse("where", "a stage or peers, and nothing ahead, for activations of cells");
  for (const int segment : rule.segments) {
    if (!of_segment_.emplace(segment, rules_.size()).second)
      refuse(subject, "one rule for each segment");
  }
  for (const auto& cell : rule.cells) {
    if (!of_cell_.emplace(cell, rules_.size()).second) refuse(subject, "one rule for each cell");
  }
  rules_.push_back(rule);
  expect_one_window();
}

/// Segments share one window of copies.
void Residency::expect_one_window() const {
  for (const Keep& rule : rules_) {
    if (leaves_segments(rule) && rule.ahead.value_or(0) != ahead_of_segments())
      refuse("ahead", "the same for all that leaves segments");
  }
}

}  // namespace stratagem::strategies
