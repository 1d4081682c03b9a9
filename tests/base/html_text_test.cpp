// Text stays text between tags and in attributes.
#include "base/html_text.hpp"

#include "base/other_words.hpp"
#include "tests/catch.hpp"

namespace stratagem {

TEST_CASE("characters that HTML would read become references") {
  CHECK(html_text("a < b & \"c\" > 'd'") == "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  CHECK(html_text("<img src=x onerror=alert(1)>").find('<') == std::string::npos);
  CHECK(html_text("über") == "über");
}

TEST_CASE("a word in another script means none of ours") {
  CHECK_FALSE(meant_by("größe", {"size", "tensor"}));
  CHECK(meant_by("TENSOR", {"size", "tensor"}) == "tensor");
}

}  // namespace stratagem
