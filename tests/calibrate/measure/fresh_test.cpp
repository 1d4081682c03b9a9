// Fresh shapes: where they are drawn from, and what is said of predictions of them.
#include <algorithm>
#include <set>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "calibrate/fresh_check.hpp"
#include "calibrate/measure/cpu_experiments.hpp"
#include "calibrate/measure/fresh_experiments.hpp"
#include "tests/catch.hpp"

using namespace stratagem;
using namespace stratagem::calibrate;

namespace {

/// Products of 1e5 to 1e8 FLOP, no narrower than 5, and kernels of 10 KB to 10 MB were measured.
cost::Profile measured_profile() {
  cost::Profile profile;
  profile.name = "mine";
  profile.evidence["gemm fp32"] = {.size = {1e5, 1e8}, .smallest = cost::Range{5, 512}};
  for (const char* kind : {"softmax", "norm", "rms_norm", "elementwise", "activation_function"})
    profile.evidence[kind] = {.size = {1e4, 1e7}};
  return profile;
}

std::vector<std::string> names_of(const std::vector<FreshExperiment>& all) {
  std::vector<std::string> names;
  for (const FreshExperiment& one : all) names.push_back(one.experiment.name());
  return names;
}

TEST_CASE("the same seed draws the same shapes, another one others") {
  const cost::Profile profile = measured_profile();
  const auto first = names_of(fresh_experiments(profile, 1, 6, Bytes{}));
  CHECK(first == names_of(fresh_experiments(profile, 1, 6, 1_MB)));
  const auto other = names_of(fresh_experiments(profile, 2, 6, Bytes{}));
  REQUIRE(other.size() == first.size());
  int same = 0;
  for (std::size_t i = 0; i < first.size(); ++i) same += first[i] == other[i] ? 1 : 0;
  CHECK(same < 3);
}

TEST_CASE("shapes are drawn within what was measured, and no sweep has them") {
  std::set<std::string> of_sweep;
  for (const Experiment& e : cpu_experiments(Sweep::full, Bytes{}).all) of_sweep.insert(e.name());
  const cost::Profile profile = measured_profile();
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    for (const auto& [group, experiment] : fresh_experiments(profile, seed, 12, Bytes{})) {
      CAPTURE(experiment.name());
      CHECK_FALSE(of_sweep.contains(experiment.name()));
      const cost::Evidence& evidence =
          profile.evidence.at(experiment.kind == "gemm" ? "gemm fp32" : experiment.kind);
      if (experiment.kind != "gemm") {
        CHECK(group == experiment.kind);
        CHECK(evidence.size.holds(experiment.bytes.value));
        continue;
      }
      CHECK(evidence.size.holds(experiment.flops.value));
      const auto& s = experiment.sizes;
      CHECK(evidence.smallest->holds(static_cast<double>(std::min({s[0], s[1], s[2]}))));
    }
  }
}

TEST_CASE("products are odd and even, narrow and wide, and transposed every way") {
  std::set<std::string> transposes;
  int odd = 0, eights = 0, narrow = 0, batched = 0;
  std::set<std::string> operations;
  for (const auto& [group, e] : fresh_experiments(measured_profile(), 1, 12, Bytes{})) {
    if (e.kind != "gemm") {
      operations.insert(e.operation);
      continue;
    }
    if (group == "attention") {
      CHECK(e.sizes[3] >= 2);
      ++batched;
      continue;
    }
    transposes.insert(e.transposes);
    const auto of_eights = [](std::int64_t size) { return size % 8 == 0; };
    (std::all_of(e.sizes.begin(), e.sizes.begin() + 3, of_eights) ? eights : odd) += 1;
    if (std::min({e.sizes[0], e.sizes[1], e.sizes[2]}) <= 20) ++narrow;
  }
  CHECK(transposes == std::set<std::string>{"NN", "NT", "TN", "TT"});
  CHECK(eights == 12);
  CHECK(odd == 12);
  CHECK(narrow >= 8);
  CHECK(batched == 12);
  CHECK(operations == std::set<std::string>{"softmax", "softmax gradient", "layer norm",
                                            "layer norm gradient", "RMS norm", "RMS norm gradient",
                                            "add", "gelu", "gelu gradient"});
}

TEST_CASE("small fresh shapes run") {
  for (const auto& [group, e] : fresh_experiments(measured_profile(), 3, 4, Bytes{})) {
    CAPTURE(e.name());
    if (e.bytes < 1_MB) e.prepare()();
  }
}

TEST_CASE("an experiment is the kernel that the simulator knows") {
  for (const auto& [group, e] : fresh_experiments(measured_profile(), 1, 2, Bytes{})) {
    const cost::Kernel kernel = kernel_of(e);
    CHECK(kernel.traffic == e.bytes);
    CHECK(kernel.launches == 1);
    CHECK(kernel.type == model::DataType::fp32);
    if (e.kind == "gemm") {
      CHECK(kernel.kind == cost::KernelKind::gemm);
      CHECK(2.0 * kernel.m * kernel.n * kernel.k * kernel.batch == e.flops.value);
    }
    if (e.operation == "RMS norm gradient") {
      CHECK(kernel.kind == cost::KernelKind::rms_norm);
      CHECK(kernel.pass == cost::KernelPass::gradient);
    }
    if (e.operation == "softmax") CHECK(kernel.pass == cost::KernelPass::forward);
  }
}

TEST_CASE("a profile that rests on no measurements has no range to draw from") {
  cost::Profile profile = measured_profile();
  profile.evidence.erase("norm");
  CHECK_THROWS_WITH(fresh_experiments(profile, 1, 2, Bytes{}),
                    StartsWith("profile mine: /evidence/norm"));
}

/// Products off by 10, 20 and 30 %, norms by 2 and 8 %.
FreshCheck planted() {
  const auto shape = [](const char* group, double ratio, double spread) {
    return FreshShape{.group = group,
                      .name = std::string(group) + " of some size",
                      .predicted = ratio * 100_us,
                      .measured = 100_us,
                      .spread = spread};
  };
  FreshCheck check{.profile = "mine", .gpu = "a processor", .ranks = 2, .seed = 7};
  check.shapes = {shape("gemm", 1.1, 0.01), shape("norm", 0.98, 0.04), shape("gemm", 0.8, 0.02),
                  shape("gemm", 1.3, 0.03), shape("norm", 1.08, 0.04)};
  return check;
}

TEST_CASE("every group has the errors of its own shapes, whichever way they are off") {
  const auto groups = errors_by_group(planted());
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].group == "gemm");
  CHECK(groups[0].errors.points == 3);
  CHECK(groups[0].errors.median == Approx(0.2));
  CHECK(groups[0].errors.worst == Approx(0.3));
  CHECK(groups[0].spread == 0.02);
  CHECK_FALSE(groups[0].met);
  CHECK(groups[1].errors.median == Approx(0.05));
  CHECK(groups[1].met);
}

TEST_CASE("a check is met when no group's median is above the limit") {
  FreshCheck check = planted();
  CHECK_FALSE(met(check));
  CHECK_THAT(describe(check), ContainsSubstring("median above 15 %"));
  check.limit = 0.2;
  CHECK(met(check));
  CHECK_THAT(describe(check), !ContainsSubstring("above"));
  CHECK_THAT(describe(check), ContainsSubstring("mine of a processor on 2 ranks, seed 7"));
}

TEST_CASE("a check with another number of busy ranks than the profile was measured with says so") {
  FreshCheck check = planted();
  check.busy_ranks = 2;
  CHECK(other_ranks(check).empty());  // not known
  check.profile_busy_ranks = {2};
  CHECK(other_ranks(check).empty());
  check.profile_busy_ranks = {1};
  CHECK_THAT(other_ranks(check),
             StartsWith("Checked with 2 ranks busy, measured with 1 rank busy: "));
  CHECK_THAT(describe(check), ContainsSubstring(other_ranks(check)));
  check.profile_busy_ranks = {2, 4};  // of two files
  CHECK_THAT(other_ranks(check), ContainsSubstring("measured with 2 ranks busy and 4 ranks busy"));
}

TEST_CASE("JSON of a check has what its text has") {
  const JsonReader json = JsonReader::from_text(json_of(planted()), "check.json");
  CHECK(json.at("schema").whole_number() == 1);
  CHECK(json.at("seed").whole_number() == 7);
  CHECK(json.at("ranks").whole_number() == 2);
  CHECK(json.at("busy_ranks").whole_number() == 1);
  CHECK(json.at("profile_busy_ranks").elements().empty());
  CHECK(json.at("limit").number() == 0.15);
  CHECK_FALSE(json.at("met").boolean());
  const auto groups = json.at("groups").elements();
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].at("median").number() == Approx(0.2));
  CHECK_FALSE(groups[0].at("met").boolean());
  CHECK(groups[1].at("met").boolean());
  const auto shapes = json.at("shapes").elements();
  REQUIRE(shapes.size() == 5);
  CHECK(shapes[2].at("predicted").number() == Approx(80e-6));
  CHECK(shapes[2].at("measured").number() == Approx(100e-6));
}

}  // namespace
