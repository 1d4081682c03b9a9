// Draws shapes of kernels and collectives at random, none of which a profile was fitted to.
#include "calibrate/measure/fresh_experiments.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "base/input_error.hpp"
#include "calibrate/measure/cpu_kernels.hpp"
#include "calibrate/measurements.hpp"
#include "cost/kernel_kind.hpp"
#include "kernels/philox.hpp"

namespace stratagem::calibrate {
namespace {

/// Sizes up to this one, so that operands of drawn products fit into memory whatever was measured.
constexpr double widest = 8192;

class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t stream) : random_{.seed = seed, .stream = stream} {}

  /// A whole number from `least` to `most`, by its logarithm.
  std::int64_t size(double least, double most) {
    const double share = kernels::uniform(random_, next_++);
    const double drawn = least * std::pow(most / least, share);
    return std::clamp(std::llround(drawn), std::llround(std::ceil(least)),
                      std::llround(std::floor(most)));
  }

  /// A place in a list of so many.
  std::size_t place(std::size_t count) {
    const double share = kernels::uniform(random_, next_++);
    return std::min(count - 1, static_cast<std::size_t>(share * static_cast<double>(count)));
  }

 private:
  kernels::RandomStream random_;
  std::uint64_t next_ = 0;
};

std::int64_t to_eights(std::int64_t size) { return (size + 7) / 8 * 8; }

const cost::Evidence& evidence_of(const cost::Profile& profile, const std::string& kind) {
  const auto found = profile.evidence.find(kind);
  if (found == profile.evidence.end())
    throw InputError("profile " + profile.name, "/evidence/" + kind,
                     "the range that was measured (stratagem calibrate measure, then fit)", "");
  return found->second;
}

double real(std::int64_t size) { return static_cast<double>(size); }

double flops_of(const Product& p) { return 2 * real(p.m) * real(p.n) * real(p.k) * real(p.batch); }

/// Is it within what the fit of products rests on?
bool measured(const Product& p, const cost::Evidence& evidence) {
  const double smallest = real(std::min({p.m, p.n, p.k}));
  return evidence.size.holds(flops_of(p)) &&
         (!evidence.smallest || evidence.smallest->holds(smallest));
}

/// Draws until a shape is within the range, which `draw` must make likely.
template <typename Drawn>
Product drawn_within(const cost::Evidence& evidence, const Drawn& draw) {
  constexpr int tries = 10'000;
  for (int i = 0; i < tries; ++i) {
    const Product product = draw();
    if (measured(product, evidence)) return product;
  }
  throw InputError("", "/evidence/gemm fp32", "a range of products that shapes can be drawn from",
                   "one that " + std::to_string(tries) + " shapes missed");
}

std::vector<Product> products(const cost::Evidence& evidence, std::uint64_t seed, int shapes) {
  const double narrowest = evidence.smallest ? evidence.smallest->least : 1;
  const std::array<std::string, 4> transposes = {"NN", "NT", "TN", "TT"};
  Draw draw(seed, 0);
  std::vector<Product> result;
  for (int i = 0; i < shapes; ++i) {
    result.push_back(drawn_within(evidence, [&] {
      std::array<std::int64_t, 3> sizes{};
      for (std::int64_t& size : sizes) size = draw.size(narrowest, widest);
      if (i % 3 == 2) sizes.at(draw.place(3)) = draw.size(narrowest, 4 * narrowest);
      if (i % 2 == 1) std::ranges::transform(sizes, sizes.begin(), &to_eights);
      return Product{.m = sizes[0],
                     .n = sizes[1],
                     .k = sizes[2],
                     .batch = 1,
                     .transposes = transposes.at(static_cast<std::size_t>(i) % 4)};
    }));
  }
  return result;
}

/// Scores (queries by keys), context, and what both make of gradients, for several heads of several
/// samples.
std::vector<Product> attention_products(const cost::Evidence& evidence, std::uint64_t seed,
                                        int shapes) {
  Draw draw(seed, 1);
  std::vector<Product> result;
  for (int i = 0; i < shapes; ++i) {
    result.push_back(drawn_within(evidence, [&]() -> Product {
      const std::int64_t heads = draw.size(2, 32), tokens = draw.size(32, 1024);
      const std::int64_t width = to_eights(draw.size(32, 128));
      if (i % 3 == 0) return {tokens, tokens, width, heads, "NT"};
      return {tokens, width, tokens, heads, i % 3 == 1 ? "NN" : "TN"};
    }));
  }
  return result;
}

const MemoryKernel& stream_named(const std::string& operation) {
  const auto found = std::ranges::find(memory_kernels(), operation, &MemoryKernel::operation);
  expects(found != memory_kernels().end(), "a kernel that sweeps have");
  return *found;
}

/// Rows of a width between 64 and 4096, together within the range of what was moved.
std::vector<Experiment> streamed(const MemoryKernel& stream, const cost::Profile& profile,
                                 std::uint64_t seed, std::uint64_t number, int shapes,
                                 const SharedPool& pool) {
  const cost::Range range = evidence_of(profile, stream.kind).size;
  constexpr double bytes_each = 4;
  const double least = range.least / stream.operands / bytes_each;
  const double most = range.most / stream.operands / bytes_each;
  Draw draw(seed, 2 + number);
  std::vector<Experiment> result;
  for (int i = 0; i < shapes; ++i) {
    const std::int64_t columns = draw.size(std::min(64.0, least), std::min(4096.0, most));
    const double elements = real(draw.size(std::max(least, real(columns)), most));
    std::int64_t rows = std::max<std::int64_t>(1, std::llround(elements / real(columns)));
    if (real(rows * columns) > most && rows > 1) --rows;
    if (real(rows * columns) < least) ++rows;
    result.push_back(streaming(stream, {rows, columns}, pool));
  }
  return result;
}

}  // namespace

std::vector<FreshExperiment> fresh_experiments(const cost::Profile& profile, std::uint64_t seed,
                                               int shapes, Bytes cache,
                                               std::optional<Bytes> working_set) {
  const auto pool = std::make_shared<Pool>(cache, working_set);
  std::vector<FreshExperiment> result;
  const cost::Evidence& gemm = evidence_of(profile, "gemm fp32");
  // Twice as many, since there are more ways for them to differ.
  for (const Product& one : products(gemm, seed, 2 * shapes))
    result.push_back({.group = "gemm", .experiment = product(one, pool)});
  for (const Product& one : attention_products(gemm, seed, shapes))
    result.push_back({.group = "attention", .experiment = product(one, pool)});
  std::uint64_t number = 0;
  for (const char* operation : {"softmax", "softmax gradient", "layer norm", "layer norm gradient",
                                "RMS norm", "RMS norm gradient", "add", "gelu", "gelu gradient"}) {
    const MemoryKernel& stream = stream_named(operation);
    for (Experiment& one : streamed(stream, profile, seed, number, shapes, pool))
      result.push_back({.group = stream.kind, .experiment = std::move(one)});
    ++number;
  }
  return result;
}

cost::Kernel kernel_of(const Experiment& experiment) {
  cost::Kernel kernel{.type = model::DataType::fp32,
                      .flops = experiment.flops,
                      .traffic = experiment.bytes,
                      .launches = 1,
                      .pass = pass_of(experiment.operation)};
  kernel.kind = cost::kernel_kind(experiment.kind);
  if (kernel.kind == cost::KernelKind::gemm) {
    kernel.m = experiment.sizes.at(0);
    kernel.n = experiment.sizes.at(1);
    kernel.k = experiment.sizes.at(2);
    kernel.batch = experiment.sizes.at(3);
    kernel.pass = cost::KernelPass::either;
  }
  return kernel;
}

}  // namespace stratagem::calibrate
