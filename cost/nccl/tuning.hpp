// NCCL's own prediction of a collective, by algorithm and protocol, and what it chooses by it.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "cost/nccl/communicator.hpp"
#include "cost/nccl/constants.hpp"
#include "cost/ring.hpp"

namespace stratagem::cost::nccl {

/// One algorithm and protocol for a collective: t = latency + payload / bandwidth, before
/// corrections that depend on the payload.
struct Estimate {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  Seconds latency;
  BytesPerSecond bandwidth;  ///< of the payload as cost/ring.hpp means it
};

/// Every way that NCCL would consider, by algorithm and protocol. With n ranks on N nodes, k = n/N
/// on each, and c channels of the speed `bw` (between GPUs up to two nodes, else through adapters):
///
///   bandwidth    bus = c bw; payload / time = bus n / steps with steps = 2(n-1) for an all-reduce,
///                n-1 for all-gather and reduce-scatter, n for broadcast and reduce
///     ring       LL min(limit, share bus); LL128 min(0.92 bus, c limit); Simple bus
///     tree       all-reduce only; t = min(0.92 bus, c limit); LL min(t / 3.8, limit); LL128
///                min(t 7/9 on one node or t 0.9375, c limit); all halved, and x 0.85 where a
///                node's tree is a plain one
///     NVLS       one node: c min(2 share intra (c-1)/c, inter) for all-reduce, with (k-1)/k
///                instead of 2 for all-gather and reduce-scatter of up to 32 ranks (whose payload /
///                time is bus)
///     NVLSTree   several nodes: the same with inter, twice that on two nodes, and a limit
///     PAT        all-gather and reduce-scatter with one GPU on each node; payload / time = share
///                bus
///   latency      b fixed, s a step within a node, w one between nodes
///     ring       b + (steps - x) max(s, overhead) + x w, x = 2(N-1) for an all-reduce, else N-1;
///                overhead, on several nodes, 1 us with Intel, 2 us with AMD, thrice that for
///                Simple; broadcast and reduce b + step, or b + n steps where channels differ in
///                order
///     tree       b + 2 ((k-1) s + log2(N) w)
///     NVLS s, NVLSTree s + 2 log2(N) w, PAT b + log2(N) w / 3.5 + 2.8 us n
///   To that, links add the latency that the constants do not contain: beyond_steps.
///
/// LL128 needs NVLinks, perhaps with one relay, and adapters without a processor on the way. The
/// unit of `s` is that of NVLink where no path is a relay or PCIe.
/// Published: tuning.cc of NVIDIA/nccl, read; error against its code on 34 machines and parts of
/// machines: below the last digit of its tables (0.1 us, 0.1 GB/s). Against measurements it is up
/// to 2.5 times too fast below 16 MiB: correction.hpp. None for sends and all-to-alls, which NCCL
/// does not predict.
std::vector<Estimate> estimates(CollectiveKind kind, const Communicator& communicator,
                                const Constants& constants);

/// A send or an all-to-all: a ring's base time and one step with the protocol Simple, over the
/// network if there is one; no bandwidth of its own (infinite): the links decide. Assumed; against
/// measured sends between two A100 (Vidur): 11.8 us from 2.18 on, where 8 to 16 are measured for 2
/// to 66 KiB.
Estimate direct_estimate(const Communicator& communicator, const Constants& constants);

/// The latency that links add to a collective: for each sequential hop, its links' latency minus
/// what the constants contain (cost/ring.hpp). With n ranks on N nodes, k on each, the sequential
/// hops are
///     ring          its ring_steps
///     tree          2 (k-1) within nodes and 2 log2(N) between
///     NVLS          one within a node
///     NVLSTree      one within a node and 2 log2(N) between
///     PAT           log2(N) between
///     send          one
///     all-to-all    one, that of the pair with the largest sum of constant and excess
/// NCCL does not take this into account when it chooses.
Seconds beyond_steps(CollectiveKind kind, Algorithm algorithm, const Communicator& communicator,
                     const Constants& constants, const Hops& hops);

/// One way at one payload. A tree's bandwidth depends on the payload (table of tuning.cc, by powers
/// of two from 64 bytes), and a ring's latency on several nodes is 1.4 times as long (before Ampere
/// 1.9) once a channel has 64 bytes for each rank.
Estimate at_payload(const Estimate& estimate, CollectiveKind kind, Bytes payload,
                    const Communicator& communicator);

/// The way of the least predicted time, the first of equals.
Estimate choose(const std::vector<Estimate>& estimates, CollectiveKind kind, Bytes payload,
                const Communicator& communicator);

}  // namespace stratagem::cost::nccl
