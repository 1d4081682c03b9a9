// The grammar of annotations, and what may be split.
#include "model/annotation.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"

namespace stratagem::model::annotation_test {

namespace {

std::vector<std::string> names(const std::vector<Term>& terms) {
  std::vector<std::string> result;
  for (const Term& term : terms) result.push_back(term.identifiers.front());
  return result;
}

}  // namespace

TEST_CASE("an annotation lists the dimensions of every input and output in order") {
  const Annotation annotation = *parse_annotation("b s k+, n k+ -> b s n, b");
  REQUIRE(annotation.inputs.size() == 2);
  REQUIRE(annotation.outputs.size() == 2);
  CHECK(names(annotation.inputs[0]) == std::vector<std::string>{"b", "s", "k"});
  CHECK(names(annotation.inputs[1]) == std::vector<std::string>{"n", "k"});
  CHECK(names(annotation.outputs[0]) == std::vector<std::string>{"b", "s", "n"});
  CHECK(names(annotation.outputs[1]) == std::vector<std::string>{"b"});
}

TEST_CASE("blanks do not matter, and identifiers may have digits and underscores") {
  const Annotation tight = *parse_annotation("b d_0,d_0->b");
  const Annotation wide = *parse_annotation("  b   d_0 ,  d_0  ->   b ");
  for (const Annotation& annotation : {tight, wide}) {
    REQUIRE(annotation.inputs.size() == 2);
    CHECK(names(annotation.inputs[0]) == std::vector<std::string>{"b", "d_0"});
    CHECK(names(annotation.inputs[1]) == std::vector<std::string>{"d_0"});
    CHECK(names(annotation.outputs[0]) == std::vector<std::string>{"b"});
  }
}

TEST_CASE("a plus marks a reduction: it may be split and leaves partial sums") {
  const Annotation annotation = *parse_annotation("b s k+, n k+ -> b s n");
  CHECK(is_reduction(annotation, "k"));
  CHECK(may_split(annotation, "k"));
  for (const std::string spatial : {"b", "s", "n"}) {
    INFO(spatial);
    CHECK_FALSE(is_reduction(annotation, spatial));
    CHECK(may_split(annotation, spatial));
  }
}

TEST_CASE("a hat on one tensor forbids to split the dimension on all") {
  const Annotation annotation = *parse_annotation("b h^, h -> b h");
  CHECK_FALSE(may_split(annotation, "h"));
  CHECK(may_split(annotation, "b"));
}

TEST_CASE("of a fused dimension only the leading part may be split, and it stands for the whole") {
  const Annotation annotation = *parse_annotation("b s (a d e^) -> b a s");
  CHECK(may_split(annotation, "a"));
  CHECK_FALSE(may_split(annotation, "d"));
  CHECK_FALSE(may_split(annotation, "e"));
  CHECK(dimension_of(annotation.inputs[0], "a") == 2);
  CHECK(dimension_of(annotation.inputs[0], "d") == -1);
  CHECK(dimension_of(annotation.outputs[0], "a") == 1);
}

TEST_CASE("what leads one group and follows in another may not be split") {
  CHECK_FALSE(may_split(*parse_annotation("(a d) -> (d a)"), "a"));
  CHECK_FALSE(may_split(*parse_annotation("(a d) -> (d a)"), "d"));
}

TEST_CASE("an identifier that no tensor names may not be split") {
  const Annotation annotation = *parse_annotation("b s -> b s");
  CHECK_FALSE(may_split(annotation, "z"));
  CHECK_FALSE(may_split(annotation, ""));
  CHECK(dimension_of(annotation.inputs[0], "z") == -1);
}

TEST_CASE("text that is not of the grammar is refused") {
  for (const std::string text : {
           "",                // no arrow
           "b s",             // no arrow
           "b s - > b s",     // a broken arrow
           "b -> b -> b",     // two arrows
           "b () -> b",       // an empty group
           "b (s h -> b s",   // an open group
           "b s) -> b",       // a group that nobody opened
           "b $ -> b",        // no identifier
           "b ^ -> b",        // a mark without its identifier
           "b s^+ -> b",      // two marks
           "b (s (h)) -> b",  // a group in a group
       }) {
    INFO(text);
    CHECK_THROWS_AS(parse_annotation(text), BrokenPromise);
  }
}

TEST_CASE("a plus on a dimension that an output names is refused") {
  // A split of it would divide the output, not leave partial sums of it.
  CHECK_THROWS_AS(parse_annotation("b k+ -> b k"), BrokenPromise);
  CHECK_THROWS_AS(parse_annotation("b k+ -> b (a k)"), BrokenPromise);
  CHECK_THROWS_AS(parse_annotation("b k -> b k+"), BrokenPromise);
}

}  // namespace stratagem::model::annotation_test
