// Measuring: medians and their certainty, experiments that count what they move, files that
// survive.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "calibrate/fit/fit.hpp"
#include "calibrate/fit/fit_profile.hpp"
#include "calibrate/fit/pace.hpp"
#include "calibrate/fit/processor.hpp"
#include "calibrate/measure/collective_experiments.hpp"
#include "calibrate/measure/cpu_experiments.hpp"
#include "calibrate/measure/ranks.hpp"
#include "calibrate/measure/recorder.hpp"
#include "calibrate/measure/stopwatch.hpp"
#include "calibrate/measurements.hpp"
#include "cost/kernel.hpp"
#include "cost/kernel_kind.hpp"
#include "kernels/ranks/thread_communicator.hpp"
#include "tests/catch.hpp"

using namespace stratagem;
using namespace stratagem::calibrate;

namespace {

/// A file that is gone when the test ends.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("stratagem_" + name)) {
    std::filesystem::remove(path_);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

const Machine machine{.host = "here", .processor = "a processor", .cache = 1_MB, .memory = 8_GB};
const Seconds pace{0.5e-3};
const Rates rates{.fp32 = FlopsPerSecond{50e9}, .memory = BytesPerSecond{10e9}, .pace = pace};

/// A file with all quick experiments, timed by the formulas of the cost models: softmaxes at 0.2 of
/// the bandwidth and their gradients at 0.7, everything else at 0.8. The core's pace is `slower`
/// times as slow in two experiments out of five, and so is all that they time.
void record_by_formula(const std::string& file, double slower = 1) {
  Recorder recorder(file, machine);
  recorder.set(rates);
  int done = 0;
  for (const Experiment& e : cpu_experiments(Sweep::quick, Bytes{}).all) {
    const double share = e.operation == "softmax"            ? 0.2
                         : e.operation == "softmax gradient" ? 0.7
                                                             : 0.8;
    const Seconds moving = e.bytes / (share * rates.memory);
    const Seconds time = e.kind == "gemm" ? e.flops / (0.9 * rates.fp32) : moving;
    const double factor = done++ % 5 < 2 ? slower : 1;
    recorder.add(e, {.median = factor * time, .spread = 0.01, .repeats = 7, .pace = factor * pace});
  }
}

TEST_CASE("the median of nine samples lies within the second and the eighth with 95 %") {
  // Binomial: P(rank 2 <= median <= rank 8) = 1 - 2 * (1 + 9) / 512 = 0.961.
  const Timed odd = median_of({Seconds{9}, Seconds{1}, Seconds{5}, Seconds{2}, Seconds{8},
                               Seconds{4}, Seconds{6}, Seconds{3}, Seconds{7}});
  CHECK(odd.median == Seconds{5});
  CHECK(odd.spread == Approx((9.0 - 2.0) / 2 / 5).margin(0.11));
  CHECK(odd.repeats == 9);
  CHECK(median_of({Seconds{1}, Seconds{2}}).median == Seconds{1.5});
  CHECK(median_of({Seconds{3}, Seconds{3}, Seconds{3}}).spread == 0);
}

TEST_CASE("work is repeated until its budget is spent, and at least so often") {
  int runs = 0;
  const Timed timed = time_of(
      [&] { ++runs; },
      {.budget = Seconds{}, .confidence = -1, .warm_up = 2, .least = 11, .shortest = Seconds{}});
  CHECK(timed.repeats == 11);
  CHECK(runs == 13);
  CHECK(timed.pace > Seconds{});
}

TEST_CASE("work that is shorter than a sample is done several times over") {
  // Where the processor works for others meanwhile the work seems long: one of many tries counts.
  bool several_times = false;
  for (int tries = 0; tries < 20 && !several_times; ++tries) {
    int runs = 0;
    const Timed timed =
        time_of([&] { ++runs; },
                {.budget = Seconds{}, .confidence = -1, .least = 7, .shortest = Seconds{1e-3}});
    several_times = runs > 2 + 7 * timed.repeats;
  }
  CHECK(several_times);
}

// A GPU that takes 10 us for a launch, and 50 where it waits for the host to ask.
TEST_CASE("a GPU is timed with the host ahead of it, however much memory that takes to fill") {
  std::vector<int> fills_asked;
  const auto ahead_from = [&](int least) {
    fills_asked.clear();
    return time_behind_fills(
        [&, least](int launches, int fills) {
          CHECK((launches == 1 || launches == 10));  // 100 us of launches
          fills_asked.push_back(fills);
          return GpuSample{fills >= least ? 10_us : 50_us, fills >= least};
        },
        {.budget = Seconds{}, .least = 7});
  };
  const std::optional<Timed> timed = ahead_from(4);
  REQUIRE(timed);
  CHECK(timed->median == 10_us);
  CHECK(timed->repeats == 7);
  CHECK(fills_asked == std::vector<int>{1, 2, 4, 4, 4, 4, 4, 4, 4, 4});
  CHECK(ahead_from(32));
  CHECK(!ahead_from(33));
  CHECK(std::ranges::max(fills_asked) == 32);
}

TEST_CASE("a host that falls behind for good leaves no time, one that is held up once does") {
  const auto behind_in = [](int first, int last) {
    int sample = 0;
    return time_behind_fills(
        [&](int, int) {
          ++sample;
          return GpuSample{200_us, sample < first || sample > last};
        },
        {.budget = Seconds{}, .least = 7});
  };
  const std::optional<Timed> held_up = behind_in(4, 4);
  REQUIRE(held_up);
  CHECK(held_up->repeats == 7);
  CHECK(!behind_in(4, 1000));
}

TEST_CASE(
    "every kind of kernel that moves memory is measured, and matrix products every way round") {
  std::set<std::string> kinds, transposes;
  for (const Experiment& e : cpu_experiments(Sweep::quick, Bytes{}).all) {
    kinds.insert(e.kind);
    if (e.kind == "gemm") transposes.insert(e.transposes);
  }
  for (const std::string& kind : cost::streaming_kinds()) CHECK(kinds.contains(kind));
  CHECK(transposes == std::set<std::string>{"NN", "NT", "TN", "TT"});
}

TEST_CASE("experiments count what they compute and move, and run") {
  for (const Experiment& e : cpu_experiments(Sweep::quick, Bytes{}).all) {
    CAPTURE(e.name());
    if (e.kind == "gemm") {
      const double m = e.sizes[0], n = e.sizes[1], k = e.sizes[2], batch = e.sizes[3];
      CHECK(e.flops.value == 2 * m * n * k * batch);
      CHECK(e.bytes.value == 4 * batch * (m * k + k * n + m * n));
    }
    if (e.operation == "add") CHECK(e.bytes.value == 12.0 * e.sizes[0] * e.sizes[1]);
    if (e.operation == "Adam") CHECK(e.bytes.value == 28.0 * e.sizes[0] * e.sizes[1]);
    if (e.sizes[0] * e.sizes[1] < 200'000 && e.bytes < 10_MB) e.prepare()();
  }
}

TEST_CASE("an operand's turn comes after a working set, or after more than caches hold") {
  constexpr std::int64_t size = 5'000;
  const auto bytes_of_a_round = [&](Pool& pool, std::int64_t room) {
    pool.make_room(room);
    pool.begin(room);
    const float* first = pool.read(size).data();
    std::int64_t elements = size;
    while (pool.read(size).data() != first) elements += size;
    return 4 * elements;
  };
  Pool cold(1_MB);
  CHECK(bytes_of_a_round(cold, 2 * size) > 2'000'000);
  Pool warm(1_MB, 300_KB);  // half to be read, half to be written
  const std::int64_t round = bytes_of_a_round(warm, 2 * size);
  CHECK(round <= 150'000);
  CHECK(round + 4 * size > 150'000);
  // What takes more has all of it apart.
  warm.begin(200'000);
  const auto one = warm.read(100'000), other = warm.read(100'000);
  CHECK(one.data() + one.size() <= other.data());
  // No more than there is, which no cache holds.
  Pool large(1_MB, 100_MB);
  CHECK(bytes_of_a_round(large, 2 * size) == bytes_of_a_round(cold, 2 * size));
  // What shares are taken of stays within, too.
  const Bytes set = 300_KB;
  const Experiment sum = cpu_experiments(Sweep::quick, 1_MB, set).bandwidth;
  CHECK(3 * 4 * sum.sizes[0] * sum.sizes[1] <= set.value);
}

TEST_CASE("asking for what there is not names what there is") {
  const std::vector<Experiment> all = cpu_experiments(Sweep::quick, Bytes{}).all;
  CHECK_NOTHROW(check_only("", all));
  CHECK_NOTHROW(check_only("softmax softmax gradient", all));
  CHECK_NOTHROW(check_only("gemm NT 127", all));
  CHECK_THROWS_WITH(check_only("mpi_", all),
                    StartsWith("--only: expected how the names of some experiments begin") &&
                        ContainsSubstring("gemm, elementwise add, ") &&
                        ContainsSubstring("found \"mpi_\""));
}

TEST_CASE("groups of a size and stride have each rank in one place, the widest reach to the end") {
  for (const int ranks : {2, 3, 7, 8, 12}) {
    for (const Sweep sweep : {Sweep::quick, Sweep::full}) {
      std::set<int> sizes;
      for (const Grouping& grouping : groupings(sweep, ranks)) {
        sizes.insert(grouping.size);
        CHECK(grouping.size * grouping.stride <= ranks);
        int placed = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const std::vector<int> members = group_of(grouping, rank, ranks);
          if (members.empty()) continue;
          ++placed;
          REQUIRE(members.size() == static_cast<std::size_t>(grouping.size));
          CHECK(std::ranges::count(members, rank) == 1);
          CHECK(members.back() < ranks);
          for (const int member : members) CHECK(group_of(grouping, member, ranks) == members);
        }
        const int run = grouping.size * grouping.stride;
        CHECK(placed == ranks / run * run);
      }
      CHECK(sizes.contains(2));
      CHECK(sizes.contains(ranks));
      if (sweep == Sweep::full) CHECK(sizes.size() == static_cast<std::size_t>(ranks - 1));
    }
  }
  // 8 ranks, 2 each, 4 apart: 1 with 5. 12 ranks, 3 each, 2 apart: 7 with 9 and 11.
  CHECK(group_of({.size = 2, .stride = 4}, 5, 8) == std::vector{1, 5});
  CHECK(group_of({.size = 3, .stride = 2}, 9, 12) == std::vector{7, 9, 11});
}

TEST_CASE("one rank has no collectives to measure") {
  const auto alone = kernels::lone();
  CHECK(collective_experiments(Sweep::full, 1_MB, *alone).empty());
}

TEST_CASE("a collective is timed as often as work is, and no shorter than it takes") {
  const auto alone = kernels::lone();
  int runs = 0;
  const auto work = [&] {
    ++runs;
    usleep(1000);
  };
  const Effort effort{.budget = Seconds{}, .confidence = -1, .warm_up = 2, .least = 7};
  for (const bool one_clock : {true, false}) {
    runs = 0;
    const Timed timed = time_of_collective(work, effort, *alone, one_clock);
    CHECK(runs == 9);
    CHECK(timed.repeats == 7);
    CHECK(timed.median >= Seconds{1e-3});
  }
}

/// One warms up for longer, so that it has less of its budget left: had each rank decided by its
/// own, the other would wait for a round that never comes.
TEST_CASE("ranks end their rounds together, however long each has warmed up") {
  std::array<int, 2> repeats{};
  kernels::run_ranks(2, [&](kernels::Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    bool warm = false;
    const auto work = [&] {
      if (rank == 0 && !warm) usleep(30000);
      warm = true;
      usleep(500);
    };
    const Effort effort{.budget = Seconds{0.04}, .confidence = -1, .warm_up = 1, .least = 3};
    repeats[rank] = time_of_collective(work, effort, world, true).repeats;
  });
  CHECK(repeats[0] == repeats[1]);
  CHECK(repeats[0] >= 3);
}

TEST_CASE("rows of collectives are kept and read, with ranks that must stay as many") {
  const TemporaryFile file("collectives.json");
  Machine four = machine;
  four.ranks = 4;
  four.cores = 8;
  const Experiment experiment{.kind = "mpi_all_reduce",
                              .operation = "",
                              .columns = {"ranks", "stride", "size B"},
                              .sizes = {2, 2, 4096},
                              .transposes = "",
                              .flops = {},
                              .bytes = Bytes{4096},
                              .prepare = {}};
  {
    Recorder recorder(file.name(), four);
    recorder.set(rates);
    recorder.add(experiment, {.median = Seconds{7e-6}, .spread = 0.01, .repeats = 9});
  }
  CHECK(Recorder(file.name(), four).has(experiment));
  const Measurements read = read_measurements(file.name());
  CHECK(read.ranks == 4);
  REQUIRE(read.mpi.size() == 1);
  CHECK(read.mpi[0].collective == cost::CollectiveKind::all_reduce);
  REQUIRE(read.mpi[0].points.size() == 1);
  CHECK(read.mpi[0].points[0].stride == 2);
  CHECK(read.mpi[0].points[0].size == Bytes{4096});
  CHECK(close(read.mpi[0].points[0].time, Seconds{7e-6}, 1e-12));
  CHECK_THROWS_WITH(
      Recorder(file.name(), machine),
      ContainsSubstring("/ranks: expected 1 ranks, as now") && ContainsSubstring("found 4 ranks"));
}

TEST_CASE("a step that fails on a lone rank fails with its own words") {
  const auto alone = kernels::lone();
  CHECK_THROWS_WITH(on_first(*alone, [] { throw InputError("a", "", "b", "c"); }),
                    ContainsSubstring("a: expected b, found c"));
  const Machine here = machine_of(*alone, "x");
  CHECK(here.ranks == 1);
  CHECK(here.servers == 1);
  CHECK(here.cores >= 1);
}

TEST_CASE("a file is gone on with: what it has is not measured again") {
  const TemporaryFile file("resume.json");
  const auto all = cpu_experiments(Sweep::quick, Bytes{}).all;
  const Timed timed{.median = Seconds{1e-3}, .spread = 0.01, .repeats = 7, .pace = pace};
  {
    Recorder recorder(file.name(), machine);
    CHECK_FALSE(recorder.has_rates());
    recorder.set(rates);
    recorder.add(all.front(), timed);
    recorder.add(all.back(), timed);
  }
  const Recorder again(file.name(), machine);
  CHECK(again.has_rates());
  CHECK(again.has(all.front()));
  CHECK(again.has(all.back()));
  CHECK_FALSE(again.has(all[1]));
  const Measurements read = read_measurements(file.name());
  CHECK(read.gemms.front().points.front().time == Seconds{1e-3});
  CHECK(close(*read.gemms.front().points.front().pace, pace, 1e-12));
  CHECK(*read.device.pace == pace);
  CHECK(read.streaming.front().points.front().bytes == all.back().bytes);
}

TEST_CASE("measurements out of a working set say so, and are gone on with out of the same") {
  const TemporaryFile file("warm.json");
  Recorder(file.name(), machine, 16_MB).set(rates);
  CHECK_THAT(read_measurements(file.name()).origin.source,
             ContainsSubstring(" --working-set '16 MB'"));
  CHECK_NOTHROW(Recorder(file.name(), machine, 16_MB));
  for (const std::optional<Bytes> other : {std::optional<Bytes>(), std::optional(8_MB)})
    CHECK_THROWS_WITH(Recorder(file.name(), machine, other),
                      ContainsSubstring("/source: expected"));
}

TEST_CASE("a file of another machine, or one that was cut off, is refused and left alone") {
  const TemporaryFile file("other.json");
  Recorder(file.name(), machine).set(rates);
  Machine other = machine;
  other.host = "there";
  CHECK_THROWS_WITH(Recorder(file.name(), other), ContainsSubstring("/host: expected \"there\""));
  other.processor = "another one";
  CHECK_THROWS_WITH(Recorder(file.name(), other),
                    ContainsSubstring("/device/gpu: expected \"another one\""));

  std::ofstream(file.name()) << R"({"schema": 1, "device": {"gpu": "a pro)";
  CHECK_THROWS_AS(Recorder(file.name(), machine), InputError);
  CHECK(std::filesystem::file_size(file.name()) > 0);
  CHECK_THROWS_WITH(Recorder("/dev/null", machine), ContainsSubstring("a plain file, or none yet"));

  // What a fit would refuse is not gone on with either.
  const TemporaryFile nothing("nothing.json");
  Recorder(nothing.name(), machine).set({.fp32 = {}, .memory = 10_GBps, .pace = pace});
  CHECK_THROWS_WITH(Recorder(nothing.name(), machine),
                    ContainsSubstring("/device/peak/fp32: expected a rate above 0"));
}

TEST_CASE("a file that cannot be written is an error that names it") {
  Recorder recorder("/nowhere/at/all.json", machine);
  CHECK_THROWS_WITH(recorder.set(rates), ContainsSubstring("/nowhere/at/all.json"));
}

TEST_CASE("a profile of a processor needs no datasheet, and gets back the shares that times had") {
  const TemporaryFile file("formula.json");
  record_by_formula(file.name());
  const Measurements measurements = read_measurements(file.name());
  const Fit fit = fit_profile({measurements}, datasheet_of_processor(measurements, "mine"));
  CHECK(fit.profile.name == "mine");
  CHECK(fit.profile.memory.size.value == 8_GB);
  CHECK(fit.profile.memory.bandwidth.provenance == cost::Provenance::measured);
  CHECK(fit.profile.collective.base.provenance == cost::Provenance::assumed);
  CHECK(fit.profile.peak.at("fp32").value == rates.fp32);
  CHECK(fit.profile.kernels.gemm.at("fp32").efficiency.value >
        0.85);  // of 0.9, less what small tiles cost
  for (const auto& [kind, share] : fit.profile.kernels.streaming) {
    CAPTURE(kind);
    if (kind != "softmax") CHECK(share.value == Approx(0.8).epsilon(0.02));
    // A share, or one for each pass, and no start, which no prediction would have.
    CHECK(fit.profile.evidence.at(kind).parameters ==
          (fit.profile.kernels.by_pass.contains(kind) ? 2 : 1));
  }
}

TEST_CASE("a core that slows down while it is measured has the profile that it has else") {
  const TemporaryFile even("even.json"), uneven("uneven.json");
  record_by_formula(even.name());
  record_by_formula(uneven.name(), 1.4);
  const cost::Profile one = fit_processor({read_measurements(even.name())}, "one").profile;
  const cost::Profile other = fit_processor({read_measurements(uneven.name())}, "one").profile;
  REQUIRE(one.pace);
  CHECK(close(one.pace->value, pace, 1e-12));
  CHECK(close(other.pace->value, pace, 1e-12));  // three experiments out of five had it
  CHECK(other.kernels.gemm.at("fp32").efficiency.value ==
        Approx(one.kernels.gemm.at("fp32").efficiency.value).epsilon(1e-3));
  for (const auto& [kind, share] : one.kernels.streaming) {
    CAPTURE(kind);
    CHECK(other.kernels.streaming.at(kind).value == Approx(share.value).epsilon(1e-3));
  }
  // Where one file does not say its paces, nothing is taken to another.
  Measurements older = read_measurements(even.name());
  older.streaming.front().points.front().pace.reset();
  CHECK_FALSE(common_pace({read_measurements(even.name()), older}));
  CHECK_FALSE(fit_processor({older}, "one").profile.pace);
  // At the pace of the others everything, rates included, is slower by as much: shares are the
  // same.
  const auto slow = at_pace({read_measurements(even.name())}, 1.4 * pace);
  CHECK(close(slow.front().gemms.front().points.front().time,
              1.4 * read_measurements(even.name()).gemms.front().points.front().time, 1e-12));
  const cost::Profile third = fit_processor(slow, "one").profile;
  CHECK(third.kernels.streaming.at("elementwise").value ==
        Approx(one.kernels.streaming.at("elementwise").value).epsilon(0.01));
  CHECK(close(1.4 * third.memory.bandwidth.value, one.memory.bandwidth.value, 1e-6));
}

TEST_CASE(
    "kernels of several files take in a profile what they took, whatever rates stand beside them") {
  const TemporaryFile file("noisy.json");
  record_by_formula(file.name());
  const Measurements usual = read_measurements(file.name());
  const cost::Profile alone = fit_processor({usual}, "one").profile;
  Measurements first = usual, last = usual;
  first.device.memory_bandwidth = 1.3 * usual.device.memory_bandwidth;
  last.device.memory_bandwidth = 0.9 * usual.device.memory_bandwidth;
  first.device.peak.at("fp32") = 1.1 * usual.device.peak.at("fp32");
  const cost::Profile all = fit_processor({first, usual, last}, "one").profile;
  CHECK(close(all.memory.bandwidth.value, first.device.memory_bandwidth, 1e-9));
  CHECK(close(all.peak.at("fp32").value, usual.device.peak.at("fp32"), 1e-9));
  for (const auto& [kind, share] : alone.kernels.streaming) {
    CAPTURE(kind);
    CHECK(1.3 * all.kernels.streaming.at(kind).value == Approx(share.value).epsilon(1e-2));
  }
  // A sum that was timed in a bad moment is not what kernels are shares of: all are above it.
  Measurements bad = usual;
  bad.device.memory_bandwidth = 0.5 * usual.device.memory_bandwidth;
  const cost::Profile despite = fit_processor({bad}, "one").profile;
  CHECK(close(despite.memory.bandwidth.value, 0.8 * usual.device.memory_bandwidth, 1e-6));
  for (const auto& [kind, share] : alone.kernels.streaming) {
    CAPTURE(kind);
    CHECK(0.8 * despite.kernels.streaming.at(kind).value == Approx(share.value).epsilon(0.05));
  }
  last.device.gpu = "another one";
  CHECK_THROWS_WITH(fit_processor({usual, last}, "one"),
                    ContainsSubstring("/device/gpu: expected \"" + usual.device.gpu));
}

TEST_CASE("a profile of a processor says how many ranks of a server were busy") {
  const TemporaryFile file("busy.json");
  record_by_formula(file.name());
  Measurements measurements = read_measurements(file.name());
  const Datasheet sheet = datasheet_of_processor(measurements, "mine");
  CHECK(fit_profile({measurements}, sheet).profile.busy_ranks == std::vector{1});
  measurements.ranks = 5;
  measurements.servers = 2;  // three on one of them
  const cost::Profile profile = fit_profile({measurements}, sheet).profile;
  CHECK(profile.busy_ranks == std::vector{3});
  const std::string text = cost::to_json(profile).text(2);
  CHECK(cost::read_profile(JsonReader::from_text(text, "p")).busy_ranks == std::vector{3});
}

TEST_CASE("a kind whose passes were measured has a share of each, and is judged by them") {
  const TemporaryFile file("passes.json");
  record_by_formula(file.name());
  const Measurements measurements = read_measurements(file.name());
  const Fit fit = fit_profile({measurements}, datasheet_of_processor(measurements, "mine"));
  const auto& passes = fit.profile.kernels.by_pass;
  CHECK(passes.at("softmax").forward.value == Approx(0.2).epsilon(0.02));
  CHECK(passes.at("softmax").gradient.value == Approx(0.7).epsilon(0.02));
  CHECK(passes.at("softmax").gradient.provenance == cost::Provenance::fitted);
  CHECK(passes.at("norm").gradient.value == Approx(0.8).epsilon(0.02));
  CHECK_FALSE(passes.contains("elementwise"));  // sums have no gradient of their own
  // A byte of each pass takes 5 and 10/7 of what it takes at full bandwidth: 45/14 on average.
  CHECK(fit.profile.kernels.streaming.at("softmax").value == Approx(14.0 / 45).epsilon(0.02));
  CHECK(fit.profile.evidence.at("softmax").all.fit.median < 0.02);
  for (const auto& [kind, evidence] : fit.profile.evidence) {
    CAPTURE(kind);
    CHECK(evidence.parameters <= 8);
  }
}

TEST_CASE("measurements of a GPU want a datasheet") {
  const Measurements gpu = read_measurements("scenarios/measurements/a100_sxm_gemm.json");
  CHECK_THROWS_WITH(datasheet_of_processor(gpu, "x"), ContainsSubstring("--datasheet"));
}

}  // namespace
