// {"op-order": ["F(i, m+1)", "B(i, m)"], ...}, a rule, and {"op-order": "F(0,0) B(0,0)"}, a chain.
#include <algorithm>
#include <set>

#include "base/input_error.hpp"
#include "strategies/language/chain.hpp"
#include "strategies/language/expand.hpp"
#include "strategies/language/primitives/all.hpp"

namespace stratagem::strategies {

using placement::Cell;

namespace {

void read_rule(PlanBuilder& builder, const JsonReader& reader,
               const std::vector<std::string>& cells) {
  OrderRule rule{.before = cells[0], .after = cells[1], .path = reader.path()};
  if (const auto let = reader.find("let")) {
    for (const std::string& name : let->keys()) rule.let.emplace_back(name, let->at(name).text());
  }
  if (const auto where = reader.find("where")) rule.where = where->text();
  static_cast<void>(expand(rule, builder.plan().extent()));  // its errors are of this primitive
  builder.plan().order(std::move(rule));
}

void read_chain(PlanBuilder& builder, const JsonReader& reader, const std::string& text) {
  const std::string path = reader.path();
  Chain chain = parse_chain(text, builder.plan().extent(), path);
  if (chain.cells.size() < 2) reader.at("op-order").fail("at least two cells");
  for (const Cell& cell : chain.cells) {
    if (cell.pass == placement::CellPass::weight &&
        !builder.plan().splits_backward(cell.stage, cell.micro_batch))
      throw InputError("", path, "W cells of backward cells that are split", to_text(cell));
  }
  for (const auto& [first, second] : chain.together) builder.plan().run_together(first, second);
  builder.plan().chain(std::move(chain.cells));
}

Primitive write(const OrderRule& rule) {
  Primitive result{.name = "op-order",
                   .subject = Json::array().push(rule.before).push(rule.after),
                   .text = rule.before + " before " + rule.after,
                   .fields = {}};
  Json let = Json::object();
  std::string text;
  for (const auto& [name, value] : rule.let) {
    let.set(name, value);
    text += text.empty() ? "let " : ", ";
    text.append(name).append(" = ").append(value);
  }
  if (!rule.let.empty()) result.fields.push_back({"let", let, text});
  if (!rule.where.empty()) result.fields.push_back(field("where", rule.where));
  return result;
}

Primitive write(const Chain& chain, const Extent& extent) {
  const ChainText text = text_of(chain, extent);
  return {.name = "op-order", .subject = text.whole, .text = text.abbreviated, .fields = {}};
}

}  // namespace

/// Two cells in a list are the patterns of a rule; anything else is a chain: a text, or a list of
/// texts that follow each other.
void read_order(PlanBuilder& builder, const JsonReader& reader) {
  const JsonReader subject = reader.at("op-order");
  if (subject.is_string()) return read_chain(builder, reader, subject.text());
  std::vector<std::string> texts;
  std::string joined;
  for (const JsonReader& text : subject.elements()) {
    texts.push_back(text.text());
    joined += " " + texts.back();
  }
  if (texts.size() == 2 && std::ranges::all_of(texts, &is_one_cell))
    return read_rule(builder, reader, texts);
  read_chain(builder, reader, joined);
}

std::vector<Primitive> write_orders(const Plan& plan) {
  const Extent extent = plan.extent();
  std::vector<Primitive> result;
  for (const OrderRule& rule : plan.orders().rules) result.push_back(write(rule));
  Chain chain{.cells = {}, .together = plan.orders().together};
  std::ranges::sort(chain.together);
  std::set<std::pair<Cell, Cell>> left(chain.together.begin(), chain.together.end());
  for (const placement::Order& order : plan.orders().pairs) {
    chain.cells = {order.before, order.after};
    result.push_back(write(chain, extent));
  }
  for (const std::vector<Cell>& cells : plan.orders().chains) {
    if (cells.size() < 2) continue;  // says nothing
    chain.cells = cells;
    for (std::size_t i = 0; i + 1 < cells.size(); ++i) left.erase({cells[i], cells[i + 1]});
    result.push_back(write(chain, extent));
  }
  for (const auto& [first, second] : left) {
    chain.cells = {first, second};
    result.push_back(write(chain, extent));
  }
  return result;
}

}  // namespace stratagem::strategies
