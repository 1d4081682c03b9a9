// The "cluster" object of a run: servers, the fabric between them, and the GPUs in use.
#pragma once

#include <string>

#include "base/json_reader.hpp"
#include "topology/cluster.hpp"

namespace stratagem::study {

/// As many nodes as `"gpus"` need, or `"nodes"` and all their GPUs.
struct ClusterChoice {
  topology::Cluster cluster;
  int gpus;
};

/// Throws InputError.
ClusterChoice read_cluster(const JsonReader& reader);

/// The profile of a cluster's GPU, as its preset or its server's file names it. Throws InputError.
std::string gpu_of(const JsonReader& reader);

/// Of two keys of which one replaces the other, the one that counts: a run's own hides that of the
/// defaults, which is marked as read.
std::string chosen(const JsonReader& reader, const std::string& one, const std::string& other);

/// A number of GPUs, servers or samples: as many as any machine room holds, so that products of two
/// stay exact.
int read_count(const JsonReader& reader);

}  // namespace stratagem::study
