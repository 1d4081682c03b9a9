// Parses annotations: terms separated by blanks, tensors by commas, inputs from outputs by `->`.
#include "model/annotation.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "base/input_error.hpp"

namespace stratagem::model {
namespace {

/// Of a text that is not of the grammar.
void wants(bool held, const char* what) {
  if (!held) throw InputError("", "", what, "");
}

struct Parser {
  std::string_view rest;
  std::set<std::string> reductions;  ///< identifiers that carried a `+`

  void skip_blanks() {
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  }

  bool take(char wanted) {
    skip_blanks();
    if (rest.empty() || rest.front() != wanted) return false;
    rest.remove_prefix(1);
    return true;
  }

  void identifier(Term& term) {
    skip_blanks();
    std::size_t length = 0;
    while (length < rest.size() &&
           (std::isalnum(static_cast<unsigned char>(rest[length])) || rest[length] == '_')) {
      ++length;
    }
    wants(length > 0, "dimensions named with letters and digits, as in `b s k+, n k+ -> b s n`");
    term.identifiers.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
    bool frozen = false;
    if (!rest.empty() && rest.front() == '^') {
      frozen = true;
      rest.remove_prefix(1);
    } else if (!rest.empty() && rest.front() == '+') {
      reductions.insert(term.identifiers.back());
      rest.remove_prefix(1);
    }
    term.frozen.push_back(frozen);
  }

  Term term() {
    Term result;
    if (!take('(')) {
      identifier(result);
      return result;
    }
    while (!take(')')) identifier(result);
    wants(!result.identifiers.empty(), "a fused dimension names at least one identifier");
    return result;
  }

  std::vector<std::vector<Term>> tensors(bool last) {
    std::vector<std::vector<Term>> result(1);
    for (skip_blanks(); !rest.empty(); skip_blanks()) {
      if (take(',')) {
        result.emplace_back();
      } else if (!last && rest.starts_with("->")) {
        break;
      } else {
        result.back().push_back(term());
      }
    }
    return result;
  }
};

bool names(const std::vector<std::vector<Term>>& tensors, std::string_view identifier) {
  return std::ranges::any_of(tensors, [&](const std::vector<Term>& terms) {
    return std::ranges::any_of(terms, [&](const Term& term) {
      return std::ranges::find(term.identifiers, identifier) != term.identifiers.end();
    });
  });
}

Annotation parsed(std::string_view text) {
  Annotation annotation{.text = std::string(text), .reductions = {}, .inputs = {}, .outputs = {}};
  Parser parser{.rest = text, .reductions = {}};
  annotation.inputs = parser.tensors(false);
  wants(parser.rest.starts_with("->"), "an arrow `->` between inputs and outputs");
  parser.rest.remove_prefix(2);
  annotation.outputs = parser.tensors(true);
  for (const std::string& identifier : parser.reductions) {
    wants(!names(annotation.outputs, identifier),
          "a `+` stands only on identifiers that no output names");
  }
  annotation.reductions.assign(parser.reductions.begin(), parser.reductions.end());
  return annotation;
}

}  // namespace

SharedAnnotation read_annotation(std::string_view text) {
  static std::map<std::string, SharedAnnotation, std::less<>> known;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(text);
  if (found != known.end()) return found->second;
  const auto annotation = std::make_shared<const Annotation>(parsed(text));
  return known.emplace(text, annotation).first->second;
}

SharedAnnotation parse_annotation(std::string_view text) {
  try {
    return read_annotation(text);
  } catch (const InputError& error) {
    throw BrokenPromise(error.expected);
  }
}

SharedAnnotation without_terms() {
  static const auto none = std::make_shared<const Annotation>();
  return none;
}

std::string to_text(const std::vector<Term>& terms, const std::vector<Term>& result) {
  std::string text;
  for (const Term& term : terms) {
    std::string part;
    for (std::size_t i = 0; i < term.identifiers.size(); ++i) {
      const bool summed = i == 0 && dimension_of(result, term.identifiers[i]) < 0;
      part += (i > 0 ? " " : "") + term.identifiers[i] + (term.frozen[i] ? "^" : summed ? "+" : "");
    }
    text += (text.empty() ? "" : " ") + (term.identifiers.size() > 1 ? "(" + part + ")" : part);
  }
  return text;
}

int dimension_of(const std::vector<Term>& terms, std::string_view identifier) {
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].identifiers.front() == identifier) return static_cast<int>(i);
  }
  return -1;
}

bool may_split(const Annotation& annotation, std::string_view identifier) {
  bool found = false;
  for (const auto* tensors : {&annotation.inputs, &annotation.outputs}) {
    for (const std::vector<Term>& terms : *tensors) {
      for (const Term& term : terms) {
        for (std::size_t i = 0; i < term.identifiers.size(); ++i) {
          if (term.identifiers[i] != identifier) continue;
          if (term.frozen[i] || i > 0) return false;
          found = true;
        }
      }
    }
  }
  return found;
}

bool is_reduction(const Annotation& annotation, std::string_view identifier) {
  return std::ranges::find(annotation.reductions, identifier) != annotation.reductions.end();
}

}  // namespace stratagem::model
