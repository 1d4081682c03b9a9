// The table of the kinds of rules, and what schemas and documents say of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cost/rule_kind.hpp"

namespace stratagem::cost {

/// Of all kinds; the last one takes back rules of a base ("drop") and makes none.
const std::vector<RuleKind>& rule_kinds();

/// What a rule "host_waits" can say.
std::vector<std::pair<std::string, HostWaits>> host_waits_words();

/// The schema of a list of rules, and its description in Markdown.
Json schema_of_rules();
std::string table_of_rules();

}  // namespace stratagem::cost
