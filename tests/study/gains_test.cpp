// What twice as much of a thing changes, against scenarios that have it.
#include "study/gains.hpp"

#include <algorithm>
#include <map>

#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem::study {
namespace {

/// The last run of a scenario.
Run last_run(const std::string& scenario) {
  const TemporaryFolder folder;
  folder.write("s.json", scenario);
  return read_scenario((folder.path() / "s.json").string()).runs.back();
}

double time_of(const std::string& scenario) {
  return simulate(last_run(scenario), {}).outcome.metrics->iteration_time.value;
}

/// By what there is twice of; 0: no plan.
std::map<std::string, double> gains_of(const std::string& scenario) {
  std::map<std::string, double> times;
  for (const Gain& gain : gains(last_run(scenario), 2))
    times[gain.of] = gain.iteration_time ? gain.iteration_time->value : 0;
  return times;
}

/// 32 data ranks of a model that is large enough to wait for them, on two servers with ports of so
/// many Gb/s.
std::string two_servers(int port, const std::string& more = "") {
  const std::string four = R"({"tensor": 2, "data": 2, "overlap_gradients": true,)"
                           R"( "bucket": "25 MiB"})";
  const std::string cluster = R"({"nodes": 2, "gpus": 32, "fabric": {"kind": "single_switch",)"
                              R"( "speed": {"bandwidth": ")" +
                              std::to_string(port) + R"( Gb/s", "latency": "1 us"}}})";
  const std::string large = with(small_scenario(), R"("hidden": 64)", R"("hidden": 1024)");
  return with(large, four,
              R"({"data": 32}, "training": {"global_batch": 64}, "cluster": )" + cluster + more);
}

TEST_CASE("one GPU gains nothing from links") {
  const std::string alone = R"({"name": "last", "cluster": {"gpus": 1}, "strategy": {}})";
  const std::string text = small_scenario();
  const std::size_t end = text.rfind("\n  ]");
  const std::string scenario = text.substr(0, end) + ",\n" + alone + text.substr(end);
  const auto times = gains_of(scenario);
  const double now = time_of(scenario);
  CHECK(times.at("links") == now);
  CHECK(times.at("network") == now);
  CHECK(times.at("launches") < now);
}

TEST_CASE("twice the network is a network of twice the speed") {
  const double slow = time_of(two_servers(10));
  const double fast = time_of(two_servers(20));
  REQUIRE(fast < slow);
  CHECK(gains_of(two_servers(10)).at("network") == fast);
}

TEST_CASE("twice the GPUs are data ranks that share the batch") {
  const std::string one = small_scenario();
  const std::string two =
      with(with(one, R"("tensor": 2, "data": 2,)", R"("tensor": 2, "data": 4,)"),
           R"({"name": "four", )", R"({"name": "four", "cluster": {"gpus": 8}, )");
  CHECK(gains_of(one).at("gpus") == time_of(two));
  const std::string whole = with(one, R"("global_batch": 8)", R"("global_batch": 4)");
  CHECK(gains_of(whole).at("gpus") == 0);  // 4 samples are no 2 for each of 4 ranks
}

TEST_CASE("a machine that is supposed to have more gets twice that") {
  const std::string twice = two_servers(10, R"(, "what_if": {"network": 2})");
  CHECK(time_of(twice) == time_of(two_servers(20)));
  CHECK(gains_of(twice).at("network") == time_of(two_servers(40)));
}

TEST_CASE("what is supposed of a profile is a profile that has it") {
  const TemporaryFolder folder;
  const std::string file = std::filesystem::absolute("scenarios/profiles/v100-sxm3.json");
  const JsonReader shipped = JsonReader::from_file(file);
  const auto constant = [&](const std::string& key) { return shipped.at(key).at("value").text(); };
  const auto large = [](const std::string& scenario) {
    return with(scenario, R"("hidden": 64)", R"("hidden": 1024)");
  };
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto twice = [&](const std::string& key, const std::string& factor) {
    const std::string value = constant(key);
    const std::size_t number = value.find(' ');
    const std::string other =
        std::to_string(std::stod(factor) * std::stod(value.substr(0, number))) +
        value.substr(number);
    const std::size_t place = text.find("\"" + value + "\"", text.find("\"" + key + "\""));
    folder.write(key + ".json", std::string(text).replace(place + 1, value.size(), other));
    return time_of(with(large(small_scenario()), file, (folder.path() / (key + ".json")).string()));
  };
  const auto gains = gains_of(large(small_scenario()));
  CHECK(gains.at("memory_bandwidth") == twice("memory_bandwidth", "2"));
  CHECK(gains.at("launches") == twice("launch", "0.5"));
}

TEST_CASE("what is supposed is said, and assumed from then on") {
  const Run run = last_run(two_servers(10, R"(, "what_if": {"network": 2, "memory": 0.5})"));
  CHECK(run.compared.all_assumed().find("2 times the bandwidth of the network") !=
        std::string::npos);
  CHECK(run.profile.memory.size.provenance == cost::Provenance::assumed);
  const Run real = last_run(two_servers(10));
  const std::string measured =
      with(two_servers(10), R"("name": "four")",
           R"("name": "four", "measured": {"iteration_time":)"
           R"( {"value": "1 s", "provenance": "measured", "source": "us"}})");
  CHECK(last_run(measured).compared.measured.size() == 1);
  const std::string supposed =
      with(measured, R"("name": "four")", R"("what_if": {"network": 2}, "name": "four")");
  CHECK(last_run(supposed).compared.measured.empty());
  CHECK(run.profile.memory.size.value == 0.5 * real.profile.memory.size.value);
  CHECK_THROWS(last_run(two_servers(10, R"(, "what_if": {"network": 0})")));
  CHECK_THROWS(last_run(two_servers(10, R"(, "what_if": {"ports": 2})")));
}

}  // namespace
}  // namespace stratagem::study
