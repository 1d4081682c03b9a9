// A training framework: the rules of what it adds to the mathematics, and plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/quantity.hpp"
#include "cost/kernel.hpp"
#include "cost/precision.hpp"
#include "cost/profile.hpp"
#include "cost/rules.hpp"

namespace stratagem::cost {

/// How a framework takes memory from the driver.
struct MemoryFacts {
  enum class Allocator : std::uint8_t {
    none,        ///< what is live, and no more
    caching,     ///< PyTorch's, see sim/caching_allocator.hpp
    expandable,  ///< the same with expandable segments
  };
  /// Workspaces of the libraries of matrix products, all together.
  struct Workspace {
    int from = 0;  ///< the least compute capability that has it, ten times CUDA's number; 0: any
    Constant<Bytes> size;
  };
  Allocator allocator = Allocator::none;
  std::vector<Workspace> workspaces;  ///< newer GPUs last
  /// What a run's GPUs have of them (choose_workspace); before that, what any GPU has.
  std::optional<Constant<Bytes>> workspace;
  bool workspace_allocated = false;  ///< is it a block of the allocator, or the driver's?
};

/// Sets `workspace` to the last that GPUs of a compute capability have (0: not known).
void choose_workspace(MemoryFacts& memory, int compute_capability);

/// A named, small set of facts about a framework version, read from its source, with at most two
/// fitted scalars of the three. No fact may depend on a model or on an experiment.
struct Stack {
  std::string name;
  std::string source;
  std::vector<std::string> precisions;  ///< for which its facts hold, of the table: "fp16"
  /// Version of the NCCL whose channels and protocols carry collectives, "2.12.12"; empty: rings in
  /// closed form (collectives.hpp).
  std::string nccl;
  MemoryFacts memory;
  /// Device time of the framework's own kernels (is_frameworks_own) over the profile's.
  Constant<double> slowdown;
  /// Host time of a launch over the profile's `launch`.
  Constant<double> host_factor;
  /// Device time of products and fused attention over the profile's; none: as there. What makes a
  /// library's kernels slower here is not known, or no rule says it.
  std::optional<Constant<double>> product_slowdown = {};
  std::vector<Rule> rules;  ///< what was read from the framework's code, a fact a rule
  /// Rules that hold with some precisions only, until choose_rules.
  struct OfPrecisions {
    std::vector<std::string> precisions;
    Rule rule;
  };
  std::vector<OfPrecisions> rules_of_precisions = {};
};

/// Puts the rules that hold with this precision behind those that hold with all: of rules about one
/// thing the last one counts. Whoever reads a run does it, once (study/scenario.cpp).
void choose_rules(Stack&, const Precision&);

/// Does a stack say exactly this?
bool says(const Stack&, const Rule&);

/// All rules of a kind, in order.
template <typename Kind>
std::vector<Kind> rules_of(const Stack& stack) {
  std::vector<Kind> found;
  for (const Rule& rule : stack.rules) {
    if (const auto* one = std::get_if<Kind>(&rule)) found.push_back(*one);
  }
  return found;
}

/// The rule of a kind of which stacks have one; what is usual where it has none.
template <typename Kind>
Kind rule_of(const Stack& stack) {
  const std::vector<Kind> found = rules_of<Kind>(stack);
  return found.empty() ? Kind{} : found.back();
}

/// The rule of a kind that says `value` in `member`, likewise.
template <typename Kind, typename Value>
Kind rule_about(const Stack& stack, Value Kind::*member, const Value& value) {
  for (auto rule = stack.rules.rbegin(); rule != stack.rules.rend(); ++rule) {
    const auto* one = std::get_if<Kind>(&*rule);
    if (one != nullptr && one->*member == value) return *one;
  }
  return {};
}

/// Implementations of fused attention, the one that runs if a GPU knows it first.
std::vector<std::string> preferred_attention(const Stack& stack);

/// Device time of a kernel as this framework runs it: kernel_time times the kernel's own slowdown
/// and the stack's for such kernels; what concerns the host as it is.
Seconds kernel_time(const Kernel& kernel, const Profile& profile, const Stack& stack);

/// Reads a stack file; throws InputError for missing or unknown keys. A file with the key "base"
/// names another stack (file_of_base), which may have one itself, and states only what differs from
/// it: a rule takes the place of the base's rule of its kind about the same thing, and {"drop":
/// {...}} takes back all rules that say what stands there.
Stack read_stack(const std::string& file, const std::filesystem::path& library = {});

/// Where the stack lies that a stack file names as its base: beside it, or else in `library`, a
/// folder of stacks.
std::string file_of_base(const std::string& file, const std::string& base,
                         const std::filesystem::path& library);

}  // namespace stratagem::cost
