// Sums up over all runs; files are named once.
#include "report/sources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/wrapped.hpp"

namespace stratagem::report {
namespace {

using study::Result;

/// The weakest constants over all runs.
struct Weak {
  cost::Provenance provenance = cost::Provenance::measured;
  std::map<std::string, std::vector<std::string>> by_file;  ///< names, "profile h100-sxm5" first
};

Weak weakest_of(const std::vector<Result>& results) {
  Weak weak;
  for (const Result& result : results)
    weak.provenance = std::max(weak.provenance, result.outcome.weakest.provenance);
  const auto add = [&](const std::string& file, const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const std::string name = path.substr(1);
      std::vector<std::string>& names = weak.by_file[file];
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  };
  for (const Result& result : results) {
    if (result.outcome.weakest.provenance != weak.provenance) continue;
    add("profile " + result.run->profile.name, result.outcome.weakest.profile);
    add("stack " + result.run->stack.name, result.outcome.weakest.stack);
    add("cluster " + result.run->cluster.design().name, result.outcome.weakest.cluster);
  }
  return weak;
}

std::string provenance(const std::vector<Result>& results) {
  const Weak weak = weakest_of(results);
  std::string text = "Weakest provenance used: " + cost::to_text(weak.provenance) + "\n";
  for (const auto& [file, names] : weak.by_file)
    text += wrapped(fmt::format("  {}: {}", file, fmt::join(names, ", ")), 4);
  return text;
}

/// The run of which the largest share of something is beyond what was measured.
template <typename Share>
const Result& most_extrapolated(const std::vector<Result>& results, const Share& share) {
  return *std::ranges::max_element(
      results, {}, [&](const Result& result) { return share(result.outcome.extrapolated); });
}

const Result& most_kernels(const std::vector<Result>& results) {
  return most_extrapolated(results, [](const auto& e) { return e.kernel_time; });
}

const Result& most_bytes(const std::vector<Result>& results) {
  return most_extrapolated(results, [](const auto& e) { return e.bytes; });
}

std::string rounded(double share) {
  return share < 0.0995 ? fmt::format("{:.2g} %", 100 * share)
                        : fmt::format("{:.0f} %", 100 * share);
}

/// The run with the largest share of kernels beyond what was measured, and that with the largest
/// share of communication; nothing where there is neither. Kinds of less than 0.1 % are in the sum
/// only.
std::string extrapolations(const std::vector<Result>& results) {
  std::string text;
  const Result& kernels = most_kernels(results);
  if (kernels.outcome.extrapolated.kernel_time > 0) {
    constexpr double least_named = 0.001;
    std::vector<std::pair<double, std::string>> largest;
    for (const auto& [kind, share] : kernels.outcome.extrapolated.by_kind) {
      if (share >= least_named) largest.emplace_back(-share, kind);
    }
    std::ranges::sort(largest);
    std::vector<std::string> kinds;
    for (const auto& [share, kind] : largest) kinds.push_back(kind + " " + rounded(-share));
    if (kinds.empty()) kinds.emplace_back("each kind less than 0.1 %");
    text += fmt::format(" {} of the kernels' time ({}; {});",
                        rounded(kernels.outcome.extrapolated.kernel_time), fmt::join(kinds, ", "),
                        kernels.run->name);
  }
  const Result& bytes = most_bytes(results);
  if (bytes.outcome.extrapolated.bytes > 0) {
    text += fmt::format(" {} of the bytes communicated ({});",
                        rounded(bytes.outcome.extrapolated.bytes), bytes.run->name);
  }
  if (text.empty()) return "";
  text.back() = '.';
  return wrapped("Extrapolated beyond measured sizes, at most:" + text, 2);
}

/// What was fitted to whole runs, so that everybody sees which ones are no predictions.
std::string scalars(const std::vector<Result>& results) {
  std::map<std::string, std::string> by_stack;
  for (const Result& result : results) {
    const cost::Stack& stack = result.run->stack;
    std::string& text = by_stack[stack.name];
    if (!text.empty()) continue;
    text = "Stack " + stack.name + ":";
    const auto add = [&](const char* name, const cost::Constant<double>& constant) {
      text += fmt::format(" {} {:.4g}, {} ({});", name, constant.value,
                          cost::to_text(constant.provenance), constant.source);
    };
    add("slowdown", stack.slowdown);
    add("host_factor", stack.host_factor);
    if (stack.product_slowdown) add("product_slowdown", *stack.product_slowdown);
    text.pop_back();
  }
  std::string all;
  for (const auto& [name, text] : by_stack) all += wrapped(text, 2);
  return all;
}

/// Stacks with a scalar that was fitted to a whole run.
std::vector<std::string> fitted_stacks(const std::vector<Result>& results) {
  std::set<std::string> names;
  for (const Result& result : results) {
    const cost::Stack& stack = result.run->stack;
    const auto fitted = [](const cost::Constant<double>& constant) {
      return constant.provenance == cost::Provenance::fitted;
    };
    if (fitted(stack.slowdown) || fitted(stack.host_factor) ||
        (stack.product_slowdown && fitted(*stack.product_slowdown)))
      names.insert(stack.name);
  }
  return {names.begin(), names.end()};
}

/// On which clusters measurements, not ports, limit collectives between servers.
std::string networks(const std::vector<Result>& results) {
  std::map<std::string, std::string> by_server;
  for (const Result& result : results) {
    const topology::NodeDesign& design = result.run->cluster.design();
    const std::vector<topology::MeasuredCollective>& measured = design.measured.all_reduces;
    if (measured.empty() || result.run->cluster.nodes() < 2) continue;
    std::string& text = by_server[design.name];
    if (!text.empty()) continue;
    text =
        "Collectives between servers of " + design.name + " get what was measured over all GPUs of";
    for (const topology::MeasuredCollective& one : measured)
      text += fmt::format(" {},", one.servers);
    text.back() = ' ';
    text += "servers, over as many ranks as theirs (" + measured.front().source + ").";
  }
  std::string all;
  for (const auto& [name, text] : by_server) all += wrapped(text, 2);
  return all;
}

}  // namespace

std::string sources_line(const std::vector<Result>& results) {
  const Weak weak = weakest_of(results);
  std::vector<std::string> files;
  for (const auto& [file, names] : weak.by_file) files.push_back(file);
  std::string text = "Weakest constants: " + cost::to_text(weak.provenance);
  if (!files.empty()) text += fmt::format(" ({})", fmt::join(files, ", "));
  if (const std::vector<std::string> fitted = fitted_stacks(results); !fitted.empty())
    text += fmt::format("; fitted to a whole run: stack {}", fmt::join(fitted, ", "));
  const double kernels = most_kernels(results).outcome.extrapolated.kernel_time;
  const double bytes = most_bytes(results).outcome.extrapolated.bytes;
  if (kernels > 0 || bytes > 0)
    text += fmt::format(
        "; beyond measured sizes: at most {} of the kernels' time, {} of the bytes communicated",
        rounded(kernels), rounded(bytes));
  return wrapped(text + ". --provenance says more.", 2);
}

std::string sources_in_full(const std::vector<Result>& results) {
  return provenance(results) + extrapolations(results) + networks(results) + scalars(results);
}

std::string unaligned_rows(const std::vector<Result>& results) {
  const auto most = std::ranges::max_element(
      results, {}, [](const Result& result) { return result.outcome.extrapolated.unaligned; });
  const double share = most->outcome.extrapolated.unaligned;
  if (share < 0.01) return "";
  return wrapped(
      fmt::format("Unaligned rows of products cost at most {:.0f} % of the kernels' time "
                  "({}): sizes that are multiples of 8 would be faster.",
                  100 * share, most->run->name),
      2);
}

}  // namespace stratagem::report
