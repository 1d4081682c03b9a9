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

/// What can be said of a subject. Nothing else is modelled, and no framework that we know does it.
struct Scope {
  What what;
  std::vector<Where> where;
  bool divided;
  bool ahead;
};

const Scope& scope_of(What what) {
  static const std::vector<Scope> scopes = {
      {What::parameters, {Where::device, Where::host, Where::drives}, true, true},
      {What::gradients, {Where::device}, true, false},
      {What::states, {Where::drives}, false, false},
      {What::activations, {Where::stage, Where::host}, false, true},
      {What::checkpoints, {Where::device}, true, false}};
  return *std::ranges::find(scopes, what, &Scope::what);
}

void check(const Keep& rule) {
  const Scope& scope = scope_of(rule.what);
  if (std::ranges::count(scope.where, rule.where) == 0)
    refuse("where", "a place where these can wait");
  if (!scope.divided && !rule.divided.empty())
    refuse("divided", "parameters, gradients or checkpoints to divide");
  if (!scope.ahead && rule.ahead) refuse("ahead", "parameters or activations to bring back ahead");
  if (rule.at_least > 0 && rule.what != What::parameters)
    refuse("at least", "parameters, of which small ones stay whole");
  const bool once = rule.between == Keep::Between::iterations;
  if (once && rule.what != What::parameters && rule.what != What::states)
    refuse("between", "\"passes\" for what lives within an iteration");
  if (once && rule.what == What::parameters && (rule.where != Where::device || rule.at_least > 0)) {
    refuse("between",
           "\"passes\" for parameters that leave the device, or of which small ones stay whole");
  }
  if (rule.what != What::activations && !(rule.segments.empty() && rule.cells.empty()))
    refuse("of", "activations, the only subject with parts of its own");
}

}  // namespace

const Keep* Residency::of(What what) const {
  const auto found = std::ranges::find(rules_, what, &Keep::what);
  return found == rules_.end() || what == What::activations ? nullptr : &*found;
}

const Keep* Residency::of_segment(int segment) const {
  const auto found = of_segment_.find(segment);
  return found == of_segment_.end() ? nullptr : &rules_[found->second];
}

const Keep* Residency::of_cell(int stage, int micro_batch) const {
  const auto found = of_cell_.find({stage, micro_batch});
  return found == of_cell_.end() ? nullptr : &rules_[found->second];
}

void Residency::keep(Keep rule) {
  check(rule);
  if (rule.what == What::activations) return keep_activations(rule);
  const auto known = std::ranges::find(rules_, rule.what, &Keep::what);
  if (known == rules_.end()) {
    rules_.push_back(std::move(rule));
  } else {
    complete(*known, rule);
  }
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
  check(all);
  known = all;
}

/// Every segment and every cell has one rule. Segments share one window of copies.
void Residency::keep_activations(const Keep& rule) {
  const std::string subject = rule.cells.empty() ? "of" : "cells";
  if (rule.segments.empty() == rule.cells.empty())
    refuse(subject, "segments or forward cells whose activations are kept");
  if (!rule.cells.empty() && (rule.where != Where::stage || rule.ahead))
    refuse("where", "a stage, and nothing ahead, for activations of cells");
  for (const Keep& other : rules_) {
    if (other.segments.empty() || rule.segments.empty()) continue;
    if (other.ahead.value_or(0) != rule.ahead.value_or(0))
      refuse("ahead", "the same for activations of all segments");
  }
  for (const int segment : rule.segments) {
    if (!of_segment_.emplace(segment, rules_.size()).second)
      refuse(subject, "one rule for each segment");
  }
  for (const auto& cell : rule.cells) {
    if (!of_cell_.emplace(cell, rules_.size()).second) refuse(subject, "one rule for each cell");
  }
  rules_.push_back(rule);
}

}  // namespace stratagem::strategies
