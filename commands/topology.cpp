// `stratagem topology`: shows clusters, and the groups of a run on their links; reads and writes
// files of servers.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/chosen_server.hpp"
#include "commands/outputs.hpp"
#include "report/groups.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"
#include "topology/fabric_choice.hpp"
#include "topology/importers/import_node.hpp"
#include "topology/node_file.hpp"
#include "topology/presets.hpp"

namespace stratagem::commands {
namespace {

/// `topology show --groups`: which links the groups of a run use.
int show_groups(const Arguments& asked) {
  const std::string file = asked.required("name");
  const study::Scenario scenario = study::read_scenario(file);
  const study::Run& run = chosen_run(scenario, asked);
  const strategies::Plan plan = study::plan_of(run);
  const program::Program program = study::program_of(run, plan);
  cost::Collectives collectives(run.cluster, run.profile.collective, run.stack.nccl);
  const std::vector<report::GroupLinks> groups = report::group_links(program, collectives);
  std::vector<Output> outputs;
  if (asked.has("svg"))
    outputs.push_back({asked.text("svg"), report::groups_svg(groups, run.cluster)});
  if (asked.has("dot"))
    outputs.push_back({asked.text("dot"), report::groups_dot(groups, run.cluster)});
  check_outputs(outputs, {file});
  fmt::print(for_people(outputs), "{}", report::groups_table(groups, run.cluster));
  write_below(outputs);
  return done;
}

/// A design does not know the file that it comes from.
topology::Cluster cluster_of(const topology::NodeFile& server, int nodes,
                             const topology::FabricDesign& fabric, const std::string& file) {
  try {
    return {server.design, nodes, fabric};
  } catch (const InputError& error) {
    if (!error.file.empty()) throw;
    throw InputError(file, error.path, error.expected, error.found);
  }
}

/// `topology show`: a cluster as a table.
int show_topology(const Arguments& asked) {
  if (asked.has("groups")) return show_groups(asked);
  for (const std::string picture : {"svg", "dot"}) {
    if (asked.has(picture)) throw UsageError("--" + picture + ": expected --groups beside it");
  }
  const topology::NodeFile server = server_named(asked.required("name"));
  const int nodes = asked.whole("nodes");
  if (nodes < 1) throw UsageError("--nodes must be at least 1");
  const auto nics = static_cast<int>(std::ranges::count(
      server.design.vertices, topology::VertexKind::nic, &topology::Vertex::kind));
  topology::FabricDesign fabric{.speed = server.port.value_or(topology::network_speeds().front())};
  if (asked.has("fabric")) {
    const auto reader = JsonReader::from_text(asked.text("fabric"), "--fabric");
    fabric = topology::read_fabric(reader, server.port, nics);
    reader.finish();
  }
  fmt::print("{}", topology::describe(cluster_of(server, nodes, fabric, asked.required("name"))));
  return done;
}

/// `topology export`: a server as a node file, to change and to name in a scenario.
int export_topology(const Arguments& asked) {
  const topology::NodeFile server = server_named(asked.required("name"));
  const std::vector<Output> outputs = {{asked.required("output"), topology::node_text(server), ""}};
  check_outputs(outputs, {asked.required("name")});
  write(outputs);
  return done;
}

/// `topology import`: a server as a node file, from what NVIDIA's tools print about it.
int import_topology(const Arguments& asked) {
  const std::string file = asked.required("name");
  const std::string output = asked.required("output");
  const auto said = [&](const std::string& key) { return asked.text_or_nothing(key); };
  const std::string port = said("port");
  std::vector<std::string> known;
  for (const topology::NetworkSpeed& speed : topology::network_speeds())
    known.push_back(speed.name);
  if (!port.empty() && std::ranges::find(known, port) == known.end())
    throw UsageError(fmt::format("--port \"{}\" is none of {}", port, fmt::join(known, ", ")));
  const topology::NodeFile node = topology::importers::import_node(
      file, {.gpu = said("gpu"), .port = port, .name = said("as")});
  const std::vector<Output> outputs = {{output, topology::node_text(node), ""}};
  check_outputs(outputs, {file});
  fmt::print(
      for_people(outputs), "{}",
      topology::describe(topology::Cluster(
          node.design, 1, {.speed = node.port.value_or(topology::network_speeds().front())})));
  fmt::print(for_people(outputs), "\nsource: {}\n\n", node.source);
  write(outputs);
  return done;
}

Options topology_options() {
  std::string presets = "\nPresets:";
  for (const topology::Preset& preset : topology::presets())
    presets += fmt::format("\n  {:<13} {}", preset.name, preset.summary);
  Options options("stratagem topology",
                  "Show and write servers; SERVER is a preset or a node file:\n"
                  "  topology show SERVER --nodes N --fabric JSON\n"
                  "  topology show SCENARIO --groups --run NAME --svg FILE --dot FILE\n"
                  "    which links the groups of a run's plan use\n"
                  "  topology export SERVER -o NODE.json\n"
                  "  topology import FILE -o NODE.json --gpu NAME --port SPEED\n"
                  "    from NCCL's NCCL_TOPO_DUMP_FILE, or what nvidia-smi topo -m prints" +
                      presets);
  options.text("verb", "show, export or import");
  options.among({"show", "export", "import"});
  options.text("name", "a preset or a node file; import: the file to read");
  options.whole("nodes", "show: number of servers", 1);
  options.text("fabric", "show: as \"fabric\" of a scenario's cluster");
  options.flag("groups", "show: the groups of a scenario's run on the cluster's links");
  options.text("run", "with --groups: the run (default: the first)", "");
  options.text("svg", "with --groups: write a picture");
  options.text("dot", "with --groups: write a graph for Graphviz");
  options.text("gpu", "import: the GPU's profile, such as a100-sxm4-80gb");
  options.text("port", "import: the adapters' speed, such as NDR");
  options.text("as", "import: the server's name (default: the file's)");
  options.text("o,output", "the node file to write");
  options.positional({"verb", "name"});
  return options;
}

int run_topology(const std::vector<std::string>& line) {
  const Arguments asked(topology_options(), line);
  if (asked.helped()) return done;
  const std::string verb = asked.required("verb");
  if (verb == "show") return show_topology(asked);
  return verb == "export" ? export_topology(asked) : import_topology(asked);
}

}  // namespace

Command topology() {
  return {"topology", "show a cluster, or write a server as a file", &topology_options,
          &run_topology};
}

}  // namespace stratagem::commands
