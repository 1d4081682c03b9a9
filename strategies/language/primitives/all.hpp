// Every kind of primitive that a plan file can hold.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "strategies/language/plan_builder.hpp"
#include "strategies/language/primitive.hpp"

namespace stratagem::strategies {

/// One kind: {NAME: subject, KEY: ..., ...} in a plan file, and its share of a plan. What `write`
/// returns, read by `read`, gives that share again.
struct PrimitiveKind {
  std::string name;
  std::string key;  ///< tells kinds of one name apart; empty: the one that has none of their keys
  void (*read)(PlanBuilder&, const JsonReader&);
  std::vector<Primitive> (*write)(const Plan&);
};

/// In the order in which a plan is written.
const std::vector<PrimitiveKind>& primitive_kinds();

/// The axes of a list, each made by an op-trans before, and named once.
std::vector<std::string> read_axis_names(const PlanBuilder&, const JsonReader& list);

// Each in its own file.
void read_colocation(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_colocations(const Plan&);
void read_split(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_splits(const Plan&);
void read_axis(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_axes(const Plan&);
void read_device(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_devices(const Plan&);
void read_device_list(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_device_lists(const Plan&);
void read_recompute(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_recompute(const Plan&);
void read_token_slices(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_token_slices(const Plan&);
void read_backward_split(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_backward_splits(const Plan&);
void read_gradients(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_gradients(const Plan&);
void read_keep(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_keeps(const Plan&);
void read_divided_steps(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_divided_steps(const Plan&);
void read_steps_on_host(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_steps_on_host(const Plan&);
void read_ring(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_rings(const Plan&);
void read_updates(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_updates(const Plan&);
void read_order(PlanBuilder&, const JsonReader&);
std::vector<Primitive> write_orders(const Plan&);

}  // namespace stratagem::strategies
