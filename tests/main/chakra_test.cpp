// Chakra's execution traces, read by a reader of protobuf's wire format that is written here.
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "base/json_reader.hpp"
#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

/// Fields of one message: numbers, or bytes of messages and texts.
struct Field {
  int number = 0;
  std::uint64_t value = 0;
  std::string bytes = {};
};

class Wire {
 public:
  explicit Wire(std::string bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] bool done() const { return at_ == bytes_.size(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE(at_ < bytes_.size());
      const auto one = static_cast<unsigned char>(bytes_[at_++]);
      value |= std::uint64_t{one & 127U} << shift;
      if (one < 128) return value;
    }
  }
  std::string delimited() {
    const std::uint64_t length = varint();
    REQUIRE(at_ + length <= bytes_.size());
    at_ += length;
    return bytes_.substr(at_ - length, length);
  }
  std::vector<Field> fields() {
    std::vector<Field> all;
    while (!done()) {
      const std::uint64_t tag = varint();
      Field field{.number = static_cast<int>(tag >> 3)};
      REQUIRE((tag & 7) % 2 == 0);  // varints and what has a length: nothing else is written
      if ((tag & 7) == 0) field.value = varint();
      if ((tag & 7) == 2) field.bytes = delimited();
      all.push_back(field);
    }
    return all;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

struct Node {
  std::uint64_t id = 0, type = 0, micros = 0;
  std::vector<std::uint64_t> dependencies = {};
  std::map<std::string, std::int64_t> numbers = {};
  std::map<std::string, std::string> texts = {};
};
enum Type : std::uint8_t { load = 2, store, compute, send, receive, collective };

Node node_of(const std::string& message) {
  Node node;
  for (const Field& field : Wire(message).fields()) {
    if (field.number == 1) node.id = field.value;
    if (field.number == 3) node.type = field.value;
    if (field.number == 7) node.micros = field.value;
    if (field.number == 5) {  // packed
      Wire packed(field.bytes);
      while (!packed.done()) node.dependencies.push_back(packed.varint());
    }
    if (field.number != 10) continue;
    std::string name;
    for (const Field& part : Wire(field.bytes).fields()) {
      if (part.number == 1) name = part.bytes;
      if (part.number == 29) node.texts[name] = part.bytes;
      if (part.number != 1 && part.number != 29)
        node.numbers[name] = static_cast<std::int64_t>(part.value);
    }
  }
  return node;
}

struct Traces {
  std::vector<std::vector<Node>> ranks;
  std::map<std::string, std::vector<std::int64_t>> groups;
  double iteration = 0, flops = 0;
};

/// A run of the small scenario with settings "tensor=2", on so many GPUs.
Traces traced(const std::string& set, int gpus) {
  const TemporaryFolder folder;
  folder.write("a.json", small_scenario());
  const Ran ran = run("simulate a.json --run four --set " + set + " --set cluster.gpus=" +
                          std::to_string(gpus) + " --chakra out --json out.json",
                      folder);
  INFO(ran.err);
  REQUIRE(ran.exit == 0);
  Traces traces;
  for (int rank = 0; rank < gpus; ++rank) {
    Wire file(folder.read("out/run." + std::to_string(rank) + ".et"));
    CHECK(Wire(file.delimited()).fields().front().bytes == "0.0.4");  // the metadata's version
    std::vector<Node>& nodes = traces.ranks.emplace_back();
    while (!file.done()) nodes.push_back(node_of(file.delimited()));
  }
  const JsonReader groups = JsonReader::from_text(folder.read("out/run.groups.json"), "groups");
  for (const std::string& name : groups.keys())
    for (const JsonReader& rank : groups.at(name).elements())
      traces.groups[name].push_back(rank.whole_number());
  const JsonReader report = JsonReader::from_text(folder.read("out.json"), "report");
  for (const JsonReader& one : report.at("runs").elements()) {
    if (one.at("name").text() != "four") continue;
    traces.iteration = one.at("iteration_time_s").number();
    traces.flops = one.at("hardware_tflops_per_gpu").number() * 1e12 * traces.iteration * gpus;
  }
  return traces;
}

void check_form(const Traces& traces) {
  double flops = 0;
  for (const std::vector<Node>& nodes : traces.ranks) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      CHECK(nodes[i].id == i);
      for (const std::uint64_t before : nodes[i].dependencies) CHECK(before < i);
      const std::int64_t picoseconds = nodes[i].numbers.at("duration_ps");
      CHECK(std::abs(static_cast<std::int64_t>(nodes[i].micros) * 1'000'000 - picoseconds) <=
            500'000);
      if (nodes[i].type == compute) flops += static_cast<double>(nodes[i].numbers.at("num_ops"));
    }
  }
  CHECK_THAT(flops, Catch::Matchers::WithinRel(traces.flops, 1e-9));
}

/// What a rank does with each group, in order.
using Story = std::vector<std::tuple<std::int64_t, std::int64_t>>;

/// Members of a group do the same; what one sends, the other receives.
void check_communication(const Traces& traces) {
  std::map<std::string, std::map<std::size_t, Story>> stories;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, int> messages;
  int sends = 0;
  for (std::size_t rank = 0; rank < traces.ranks.size(); ++rank) {
    for (const Node& node : traces.ranks[rank]) {
      if (node.type == collective)
        stories[node.texts.at("pg_name")][rank].emplace_back(node.numbers.at("comm_type"),
                                                             node.numbers.at("comm_size"));
      if (node.type != send && node.type != receive) continue;
      const auto number = [&](const char* name) { return node.numbers.at(name); };
      CHECK(number(node.type == send ? "comm_src" : "comm_dst") == static_cast<std::int64_t>(rank));
      messages[{number("comm_src"), number("comm_dst"), number("comm_tag"), number("comm_size")}] +=
          node.type == send ? 1 : 1000;
      ++sends;
    }
  }
  for (const auto& [group, members] : stories) {
    CAPTURE(group);
    CHECK(members.size() == traces.groups.at(group).size());
    for (const auto& [rank, story] : members) {
      CHECK(std::ranges::count(traces.groups.at(group), static_cast<std::int64_t>(rank)) == 1);
      CHECK(story == members.begin()->second);
    }
  }
  for (const auto& [message, times] : messages) CHECK(times == 1001);
  CHECK((sends > 0 || !stories.empty()));
}

/// When the last node ends, if each begins when what it depends on has ended.
double replayed(const std::vector<Node>& nodes) {
  std::vector<std::int64_t> ends;
  for (const Node& node : nodes) {
    std::int64_t begin = 0;
    for (const std::uint64_t before : node.dependencies) begin = std::max(begin, ends[before]);
    ends.push_back(begin + node.numbers.at("duration_ps"));
  }
  return static_cast<double>(*std::ranges::max_element(ends)) / 1e12;
}

TEST_CASE("a trace of one rank takes as long as predicted, where the host is ahead") {
  const Traces traces =
      traced("hidden=4096 --set data=1 --set tensor=1 --set pipeline=1 --set stack=plain", 1);
  check_form(traces);
  CHECK_THAT(replayed(traces.ranks.front()), Catch::Matchers::WithinRel(traces.iteration, 1e-12));
}

TEST_CASE("ranks of a trace do the same collectives, and receive what others send") {
  for (const char* plan : {"data=1 --set tensor=2 --set pipeline=2",
                           "data=4 --set tensor=1 --set pipeline=1 --set zero=3",
                           "data=1 --set tensor=1 --set pipeline=2 --set context=2"}) {
    CAPTURE(plan);
    const Traces traces = traced(plan, 4);
    check_form(traces);
    check_communication(traces);
    for (const std::vector<Node>& nodes : traces.ranks)
      CHECK(replayed(nodes) <= traces.iteration * (1 + 1e-12));
  }
}

TEST_CASE("copies to the host and back are loads and stores") {
  const Traces traces =
      traced("data=1 --set tensor=1 --set pipeline=1 --set swap=2 --set recompute=full", 1);
  std::int64_t loaded = 0, stored = 0;
  for (const Node& node : traces.ranks.front()) {
    if (node.type == load) loaded += node.numbers.at("tensor_size");
    if (node.type == store) stored += node.numbers.at("tensor_size");
  }
  CHECK(loaded == stored);
  CHECK(stored > 0);
}

}  // namespace
}  // namespace stratagem
