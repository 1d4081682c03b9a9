// The tables of tuning.cc, read at the named tags of NVIDIA/nccl.
#include "cost/nccl/constants.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/input_error.hpp"

namespace stratagem::cost::nccl {
namespace {

constexpr ByNodes always(double value) { return {value, value, value}; }
constexpr ByNodes volta_ll{39, 39, 20.4};
constexpr ByNodes ampere_ll{87.7, 22.5, 19};
constexpr ByNodes volta_tree{26.5, 18.5, 10};
constexpr ByNodes ampere_tree{24, 23.6, 17.8};
constexpr ByNodes hopper_tree{38.7, 41.4, 36};

/// 2.8.4: published, read. Ring LL128 is limited by collective there; all-reduce's limit stands for
/// all. What it does not tell, the shares of LL and what holds between nodes, is taken from 2.12.12
/// (assumed), Hopper's and Blackwell's rows from Ampere's (there were none).
Constants version_2_8() {
  return {.version = "2.8.4",
          .base = {{{4.4, 4.4, 0}, {3.6, 10, 8.4}}},
          .nvlink = {.time = {{{0.52, 1.25, 28}, {0.47, 1.9, 3.4}}}, .contained = 50_ns},
          .pcie = {.time = {{{1, 1.9, 28}, {1, 2.5, 5.7}}}, .contained = 700_ns},
          .network = {.time = {{{5, 8.5, 28}, {2.7, 4, 9.6}}}, .contained = 1.8_us},
          .ll_among_nodes = 1.8,
          .ll_total = {volta_ll, ampere_ll, ampere_ll, ampere_ll},
          .channel = {.ring_ll128 = {always(16.9), always(16.9), always(16.9), always(16.9)},
                      .tree_ll128 = {always(16.9), always(16.9), always(16.9), always(16.9)},
                      .tree = {volta_tree, {24, 22.5, 16}, {24, 22.5, 16}, {24, 22.5, 16}}},
          .share = {.ring_ll = 0.25, .gather_ll = 1.0 / 3},
          .processor_overhead = false,
          .proxies = false};
}

/// 2.12.12: published, read, but for the processor's overhead, whose absence is assumed.
Constants version_2_12() {
  Constants c = version_2_8();
  c.version = "2.12.12";
  c.network.time[1][2] = 28;
  c.channel.ring_ll128 = c.channel.tree_ll128 = {always(20), always(20), always(20), always(20)};
  c.channel.tree = {volta_tree, ampere_tree, ampere_tree, ampere_tree};
  c.ampere_total = 235;
  c.proxies = true;
  return c;
}

/// 2.18.6: published, read, but for the rules between nodes, which are taken from 2.28.9 (assumed).
Constants version_2_18() {
  Constants c = version_2_12();
  c.version = "2.18.6";
  c.base = {{{6.8, 14, 0}, {6.6, 14, 8.4}, {0, 0, 23}, {0, 0, 23}}};
  c.nvlink.time = {{{0.6, 1.25, 4}, {0.6, 1.9, 3.4}}};
  c.pcie.time = {{{1, 1.9, 6}, {1, 2.5, 5.7}}};
  c.network.time = {{{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 18}, {0, 0, 19}}};
  c.channel.ring_ll128[2] = c.channel.ring_ll128[3] = always(36.7);
  c.channel.tree_ll128[2] = c.channel.tree_ll128[3] = {36.7, 36.7, 29};
  c.channel.tree[2] = c.channel.tree[3] = hopper_tree;
  c.channel.nvls_tree = {volta_tree, ampere_tree, {0, 57.7, 45.5}, {0, 57.7, 45.5}};
  c.share.nvls = {0, 0, 0.85, 0.85};
  c.ll_among_nodes = 1;
  c.ampere_total = 0;
  c.processor_overhead = true;
  return c;
}

/// 2.20.5: published, read. When the share of LL rose, between 2.19 and 2.22, is not known: old
/// here (assumed).
Constants version_2_20() {
  Constants c = version_2_18();
  c.version = "2.20.5";
  c.base[2] = c.base[3] = {0, 0, 0};
  c.nvlink.time[2] = c.nvlink.time[3] = {0, 0, 23};
  c.nvlink.time[0][2] = c.pcie.time[0][2] = c.network.time[0][2] = 28;
  c.network.time[3][2] = 14;
  return c;
}

/// 2.23.4: published, read; NVLS and Hopper's LL changed with 2.21.5.
Constants version_2_23() {
  Constants c = version_2_20();
  c.version = "2.23.4";
  c.base[0][2] = 8.4;
  c.base[4] = {8, 8, 8};
  c.nvlink.time[0][2] = c.pcie.time[0][2] = 4;
  c.network.time[0][2] = 14;
  c.nvlink.time[2] = c.nvlink.time[3] = {0, 0, 25};
  c.nvlink.time[4] = c.pcie.time[4] = {0, 0, 4};
  c.network.time[4] = {0, 0, 14};
  c.ll_total[2] = c.ll_total[3] = {141, 45, 35};
  c.share.ring_ll = c.share.gather_ll = 0.5;
  c.share.pat = 0.85;
  return c;
}

/// 2.28.9: published, read.
Constants version_2_28() {
  Constants c = version_2_23();
  c.version = "2.28.9";
  c.network.time[3][2] = 20.9;
  c.ll_total[3] = {282, 90, 70};
  c.channel.ring_ll128[3] = {73.4, 34.6, 73.4};
  c.channel.tree_ll128[3] = {55.6, 31.67, 20};
  c.channel.tree[3] = {70, 42.8, 24};
  c.channel.nvls_tree[3] = {0, 96, 43.8};
  c.share.nvls[3] = 0.74;
  c.share.pat = 0.75;
  return c;
}

using Numbers = std::array<int, 3>;

std::optional<Numbers> numbers(const std::string& version) {
  Numbers parts{};
  char rest = 0;
  const int read =
      std::sscanf(version.c_str(), "%d.%d.%d%c", parts.data(), &parts[1], &parts[2], &rest);
  return read == 3 ? std::optional(parts) : std::nullopt;
}

}  // namespace

std::string to_text(Algorithm algorithm) {
  constexpr std::array names = {"tree", "ring", "NVLS", "NVLSTree", "PAT", "direct"};
  return names.at(static_cast<std::size_t>(algorithm));
}

std::string to_text(Protocol protocol) {
  constexpr std::array names = {"LL", "LL128", "Simple"};
  return names.at(static_cast<std::size_t>(protocol));
}

const std::vector<Constants>& constants_by_version() {
  static const std::vector<Constants> table{version_2_8(),  version_2_12(), version_2_18(),
                                            version_2_20(), version_2_23(), version_2_28()};
  return table;
}

bool is_version(const std::string& text) { return numbers(text).has_value(); }

const Constants& constants_of(const std::string& version) {
  const auto wanted = numbers(version);
  expects(wanted.has_value(), "a version of NCCL is three numbers with dots between");
  const std::vector<Constants>& known = constants_by_version();
  const auto newer = std::ranges::find_if(
      known, [&](const Constants& c) { return *numbers(c.version) > *wanted; });
  return newer == known.begin() ? known.front() : *(newer - 1);
}

}  // namespace stratagem::cost::nccl
