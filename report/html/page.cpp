// Fills the places of web/page.html.
#include "report/html/page.hpp"

#include <map>
#include <string_view>

#include "base/html_text.hpp"
#include "report/html/assets.hpp"
#include "report/report.hpp"
#include "report/validation.hpp"

namespace stratagem::report {
namespace {

/// No element of a script ends within it: "<" as JSON's "\u003c".
std::string within_script(const std::string& json) {
  std::string result;
  for (const char one : json) {
    if (one == '<')
      result += "\\u003c";
    else
      result += one;
  }
  return result;
}

/// A page with this title; `data` has a key "kind", by which web/report.js knows it.
std::string html_page(const std::string& title, const Json& data) {
  const std::map<std::string_view, std::string> parts = {{"title", html_text(title)},
                                                         {"style", std::string(assets::style)},
                                                         {"data", within_script(data.text())},
                                                         {"library", std::string(assets::library)},
                                                         {"script", std::string(assets::script)}};
  std::string page;
  std::string_view rest = assets::page;
  for (std::size_t at = rest.find("{{"); at != std::string_view::npos; at = rest.find("{{")) {
    const std::size_t end = rest.find("}}", at);
    page += rest.substr(0, at);
    page += parts.at(rest.substr(at + 2, end - at - 2));
    rest.remove_prefix(end + 2);
  }
  return page.append(rest);
}

}  // namespace

std::string simulated_page(const study::Scenario& scenario,
                           const std::vector<study::Result>& results, const Json& pictures) {
  return html_page(scenario.question, Json::object()
                                          .set("kind", "simulate")
                                          .set("report", to_json(scenario, results))
                                          .set("pictures", pictures));
}

std::string searched_page(const std::string& question, const std::string& objective,
                          const Json& found) {
  return html_page(
      question,
      Json::object().set("kind", "search").set("objective", objective).set("search", found));
}

std::string validated_page(const study::Validation& validation) {
  return html_page("Predicted and measured",
                   Json::object().set("kind", "validate").set("validation", to_json(validation)));
}

}  // namespace stratagem::report
