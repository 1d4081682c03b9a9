// Reading JSON: every error tells file, path, expected and found in one line; nothing unread goes
// unnoticed.
#include "base/json_reader.hpp"

#include "base/input_error.hpp"
#include "base/malformed_input.hpp"
#include "base/nearest.hpp"
#include "base/pattern.hpp"
#include "base/quantity_text.hpp"
#include "tests/catch.hpp"

using namespace stratagem;

namespace {

JsonReader read(const std::string& text) { return JsonReader::from_text(text, "a.json"); }

/// The message of the InputError that `act` throws, "" if it throws none.
template <typename Act>
std::string complaint(Act act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a reader walks by key and index and knows its path") {
  const JsonReader json = read(R"({"runs": [{"name": "x"}, {"a/b~c": 8.5}]})");
  CHECK(json.path().empty());
  CHECK(json.file() == "a.json");
  const auto runs = json.at("runs").elements();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].at("name").text() == "x");
  CHECK(runs[0].at("name").path() == "/runs/0/name");
  CHECK(runs[1].at("a/b~c").number() == 8.5);
  CHECK(runs[1].at("a/b~c").path() == "/runs/1/a~1b~0c");  // RFC 6901, section 3
}

TEST_CASE("a reader tells what a value is without complaint") {
  const JsonReader json = read(R"({"o": {}, "a": [], "s": "", "n": 1, "z": null, "t": true})");
  CHECK(json.at("o").is_object());
  CHECK(json.at("a").is_array());
  CHECK(json.at("s").is_string());
  CHECK(json.at("n").is_number());
  CHECK(json.at("z").is_null());
  CHECK(json.at("t").boolean());
  CHECK_FALSE(json.at("t").is_number());
  CHECK(json.has("o"));
  CHECK_FALSE(json.find("absent"));
  CHECK(json.keys() == std::vector<std::string>{"o", "a", "s", "n", "z", "t"});
}

TEST_CASE("a file that is not there is named") {
  CHECK(complaint([] { (void)JsonReader::from_file("no/such.json"); }) ==
        "no/such.json: expected a file that can be read, found No such file or directory");
  CHECK(complaint([] { (void)JsonReader::from_file("/tmp"); }) ==
        "/tmp: expected a file that can be read, found a folder");
}

TEST_CASE("broken JSON is reported with line and column, in one line") {
  // The brace stands in the second line, fourth column.
  const std::string text = complaint([] { (void)read("{\"a\": 1,\n   }"); });
  CHECK_THAT(text, StartsWith("a.json: expected JSON, found line 2, column 4: unexpected '}'"));
  CHECK(text.find('\n') == std::string::npos);
  CHECK_THAT(complaint([] { (void)read(""); }), ContainsSubstring("line 1, column 1"));
  CHECK_THAT(complaint([] { (void)read("{} {}"); }), ContainsSubstring("line 1, column 4"));
  CHECK(complaint([] { (void)read("[1e999]"); }) ==
        "a.json: expected JSON, found a number that is too large");
}

TEST_CASE("a key given twice is an error, not the last one's victory") {
  CHECK(complaint([] { (void)read(R"({"runs": [{}, {"a": [0], "a": 2}]})"); }) ==
        "a.json: /runs/1/a: expected every key once, found the key \"a\" twice");
}

TEST_CASE("a missing key is reported at its object, with the keys that are there") {
  CHECK(complaint([] { (void)read(R"({"o": {"b": 1, "c": 2}})").at("o").at("name"); }) ==
        "a.json: /o: expected the key \"name\", found only \"b\", \"c\"");
  CHECK(complaint([] { (void)read("{}").at("name"); }) ==
        "a.json: expected the key \"name\", found no keys");
}

TEST_CASE("a value of the wrong type is shown beside the right one") {
  const JsonReader json = read(R"({"yes": "yes", "n": 1.5, "o": {"k": [1, null]}})");
  CHECK(complaint([&] { (void)json.at("yes").boolean(); }) ==
        "a.json: /yes: expected true or false, found \"yes\"");
  CHECK(complaint([&] { (void)json.at("n").text(); }) ==
        "a.json: /n: expected a string, found 1.5");
  CHECK(complaint([&] { (void)json.at("yes").number(); }) ==
        "a.json: /yes: expected a number, found \"yes\"");
  CHECK(complaint([&] { (void)json.at("o").elements(); }) ==
        "a.json: /o: expected an array, found {\"k\":[1,null]}");
  CHECK(complaint([&] { (void)json.at("n").at("k"); }) ==
        R"(a.json: /n: expected an object, as {"k": ...}, found 1.5)");
  CHECK(complaint([&] { (void)json.at("n").keys(); }) ==
        "a.json: /n: expected an object, found 1.5");
}

TEST_CASE(
    "a long value is shown by its first 60 bytes and how many more, no character cut in two") {
  const std::string letters(80, 'x');
  CHECK(complaint([&] { (void)read('"' + letters + '"').number(); }) ==
        "a.json: expected a number, found \"" + letters.substr(0, 59) + "... (22 more bytes)");
  // The quote and 58 letters leave byte 60 to the first half of a two-byte character.
  const std::string umlaut = letters.substr(0, 58) + "\u00e4" + letters;
  CHECK(complaint([&] { (void)read('"' + umlaut + '"').number(); }) ==
        "a.json: expected a number, found \"" + letters.substr(0, 58) + "... (83 more bytes)");
}

TEST_CASE("whole numbers are whole, in range and not too small") {
  CHECK(read("512").whole_number() == 512);
  CHECK(read("1e6").whole_number() == 1'000'000);
  CHECK(read("-9223372036854775808").whole_number() == INT64_MIN);
  CHECK(complaint([] { (void)read("1.5").whole_number(); }) ==
        "a.json: expected a whole number (below 2^63), found 1.5");
  CHECK(complaint([] { (void)read("9223372036854775808").whole_number(); }) ==
        "a.json: expected a whole number (below 2^63), found 9223372036854775808");
  CHECK_THAT(complaint([] { (void)read("1e300").whole_number(); }),
             StartsWith("a.json: expected a whole number"));
  CHECK(read("1").at_least(1) == 1);
  CHECK(complaint([] { (void)read("0").at_least(1); }) ==
        "a.json: expected a whole number >= 1, found 0");
  CHECK(complaint([] { (void)read("\"8\"").at_least(1); }) ==
        "a.json: expected a whole number >= 1, found \"8\"");
  CHECK(complaint([] { (void)read("2.5").at_least(1); }) ==
        "a.json: expected a whole number >= 1, found 2.5");
}

TEST_CASE("a quantity needs a unit of its dimension and no minus sign") {
  CHECK(read("\"450 GB/s\"").quantity<BytesPerSecond>() == 450_GBps);
  CHECK(read("\"0 s\"").quantity<Seconds>() == 0_s);
  const std::string expected = "a.json: expected " + std::string(expected_quantity<Seconds>());
  CHECK(complaint([] { (void)read("\"5 GB\"").quantity<Seconds>(); }) ==
        expected + ", found \"5 GB\"");
  CHECK(complaint([] { (void)read("5").quantity<Seconds>(); }) == expected + ", found 5");
  CHECK(complaint([] { (void)read("\"-5 s\"").quantity<Seconds>(); }) ==
        expected + ", found \"-5 s\"");
}

TEST_CASE("quantities that no machine has are refused, and so is a minus sign before nothing") {
  for (const char* text : {"1e6 s", "0 s", "1e-12 s"})
    CHECK_NOTHROW(read('"' + std::string(text) + '"').quantity<Seconds>());
  CHECK(complaint([] { (void)read("\"1.1e6 s\"").quantity<Seconds>(); }) ==
        "a.json: expected a time of at most 1e6 s, found \"1.1e6 s\"");
  CHECK_THAT(complaint([] { (void)read("\"-0 us\"").quantity<Seconds>(); }),
             ContainsSubstring("found \"-0 us\""));
  CHECK(complaint([] { (void)read("\"1e300 MiB\"").quantity<Bytes>(); }) ==
        "a.json: expected a size of at most 1e6 TB, found \"1e300 MiB\"");
  CHECK(read("\"1e9 TB/s\"").quantity<BytesPerSecond>().value == 1e21);
  CHECK(complaint([] { (void)read("\"0.9 B/s\"").quantity<BytesPerSecond>(); }) ==
        "a.json: expected a bandwidth of 0, or of 1 B/s to 1e9 TB/s, found \"0.9 B/s\"");
  CHECK_THAT(complaint([] { (void)read("\"1e7 EFLOP/s\"").quantity<FlopsPerSecond>(); }),
             ContainsSubstring("1 FLOP/s to 1e6 EFLOP/s"));
}

TEST_CASE("an error echoes the beginning of what is long, and says how much is left out") {
  const std::string long_text(3'000'000, 'x');
  const InputError error("a.json", "/" + long_text, "a, " + long_text, long_text);
  const std::string what = error.what();
  CHECK(what.size() < 5000);
  CHECK_THAT(what, StartsWith("a.json: /xxx"));
  CHECK_THAT(what,
             ContainsSubstring("x... (2999601 more bytes): expected a, x"));  // 400 with the slash
  CHECK_THAT(what, ContainsSubstring("x... (2998003 more bytes), found x"));  // 2,000 with "a, "
  CHECK_THAT(what, ContainsSubstring("x... (2998000 more bytes)"));
  CHECK(error.found == long_text);
}

TEST_CASE("slips in writing are told from values that cannot go together") {
  const JsonReader json = read(R"({"n": 1, "s": "x"})");
  const auto malformed = [](const auto& act) {
    try {
      act();
    } catch (const MalformedInput&) {
      return true;
    } catch (const InputError&) {
      return false;
    }
    throw std::logic_error("nothing refused");
  };
  CHECK(malformed([&] { (void)json.at("absent"); }));
  CHECK(malformed([&] { (void)json.at("s").number(); }));
  CHECK(malformed([&] { (void)json.at("s").one_of({"y"}); }));
  CHECK(malformed([&] { (void)json.at("s").quantity<Bytes>(); }));
  CHECK(malformed([&] { (void)json.at("n").at_least(2); }));
  CHECK(malformed([&] { read(R"({"n": 1})").finish(); }));
  CHECK(!malformed([&] { (void)json.at("n").between(0, 0); }));
  CHECK(!malformed([&] { json.at("n").fail("a divisor of something"); }));
}

TEST_CASE("one of several words, or the nearest is suggested") {
  CHECK(read("\"gpipe\"").one_of({"gpipe", "1f1b"}) == "gpipe");
  CHECK(complaint([] {
          (void)read("\"gpip\"").one_of({"1f1b", "gpipe"});
        }) ==
        "a.json: expected one of \"1f1b\", \"gpipe\" (did you mean \"gpipe\"?), found \"gpip\"");
  CHECK(complaint([] {
          (void)read("3").one_of({"1f1b", "gpipe"});
        }) == "a.json: expected one of \"1f1b\", \"gpipe\", found 3");
}

TEST_CASE("a key that nobody asked for is an error that names the nearest") {
  const JsonReader json = read(R"({"runs": [{"name": "x", "stratgy": 1}]})");
  for (const JsonReader& run : json.at("runs").elements()) {
    (void)run.at("name");
    (void)run.find("strategy");
  }
  CHECK(complaint([&] { json.finish(); }) ==
        "a.json: /runs/0/stratgy: expected one of the known keys (did you mean \"strategy\"?), "
        "found an unknown key");
}

TEST_CASE("an unknown key like no other gets the list of the known ones") {
  const JsonReader json = read(R"({"name": "x", "colour": "red"})");
  (void)json.at("name");
  (void)json.has("cluster");
  CHECK(complaint([&] { json.finish(); }) ==
        "a.json: /colour: expected one of the known keys \"name\", \"cluster\", found an unknown "
        "key");
}

TEST_CASE("copies of a reader share what was read, and skip reads all below") {
  const JsonReader json = read(R"({"a": {"x": 1}, "b": {"y": {"z": 2}}})");
  const JsonReader copy = json;
  (void)copy.at("a").at("x").number();
  copy.at("b").skip();
  CHECK(complaint([&] { json.finish(); }).empty());
  const JsonReader fresh = read(R"({"b": {"y": 1}})");
  (void)fresh.at("b");
  CHECK_THAT(complaint([&] { fresh.finish(); }), StartsWith("a.json: /b/y: "));
}

TEST_CASE("keys marks every key as read") {
  const JsonReader json = read(R"({"x": 1, "y": 2})");
  (void)json.keys();
  CHECK(complaint([&] { json.finish(); }).empty());
}

TEST_CASE("a run overrides single fields of the defaults") {
  const JsonReader defaults = JsonReader::from_text(
      R"({"training": {"batch": 8, "optimizer": "adam"}, "model": "gpt2"})", "d.json");
  const JsonReader run = read(R"({"name": "r", "training": {"batch": 512}})").over(defaults);
  CHECK(run.at("training").at("batch").whole_number() == 512);
  CHECK(run.at("training").at("batch").file() == "a.json");
  CHECK(run.at("training").at("optimizer").text() == "adam");
  CHECK(run.at("training").at("optimizer").file() == "d.json");
  CHECK(run.at("training").at("optimizer").path() == "/training/optimizer");
  CHECK(run.at("model").text() == "gpt2");
  CHECK(run.keys() == std::vector<std::string>{"name", "training", "model"});
  CHECK(run.dump() == R"({"name":"r","training":{"batch":512,"optimizer":"adam"},"model":"gpt2"})");
}

TEST_CASE("only objects are layered: anything else hides the default") {
  const JsonReader defaults = read(R"({"m": {"preset": "a"}, "list": [1, 2]})");
  const JsonReader run = read(R"({"m": "b", "list": [3]})").over(defaults);
  CHECK(run.at("m").text() == "b");
  CHECK(run.at("list").elements().size() == 1);
}

TEST_CASE("null takes a default away, and is a value where there is none") {
  const JsonReader defaults = read(R"({"model": {"window": 128, "layers": 4}, "plan": "p"})");
  const JsonReader run = read(R"({"model": {"window": null, "sinks": null}, "plan": null})");
  const JsonReader both = run.over(defaults);
  CHECK_FALSE(both.has("plan"));
  CHECK_FALSE(both.at("model").has("window"));
  CHECK(both.at("model").at("layers").whole_number() == 4);
  CHECK(both.at("model").keys() == std::vector<std::string>{"sinks", "layers"});
  CHECK(both.dump() == R"({"model":{"sinks":null,"layers":4}})");
  CHECK(complaint([&] { (void)both.at("model").at("sinks").boolean(); }) ==
        "a.json: /model/sinks: expected true or false, found null");
  // Of three layers the lowest comes back by nobody.
  const JsonReader three = both.over(read(R"({"model": {"window": 64}})"));
  CHECK_FALSE(three.at("model").has("window"));
  CHECK(three.at("model").dump() == R"({"sinks":null,"layers":4})");
  CHECK_NOTHROW(run.finish());
}

TEST_CASE("errors in layered values name the file where the value stands") {
  const JsonReader defaults = JsonReader::from_text(R"({"training": {"batch": "x"}})", "d.json");
  const JsonReader run = read(R"({"training": {}})").over(defaults);
  CHECK(complaint([&] { (void)run.at("training").at("batch").number(); }) ==
        "d.json: /training/batch: expected a number, found \"x\"");
  CHECK(complaint([&] { (void)run.at("training").at("steps"); }) ==
        "a.json: /training: expected the key \"steps\", found only \"batch\"");
}

TEST_CASE("a run answers for its own keys, the owner of the defaults for theirs") {
  const JsonReader defaults =
      JsonReader::from_text(R"({"training": {"batch": 8, "bucket": 25, "bath": 1}})", "d.json");
  const JsonReader first = read(R"({"training": {"batch": 16}})").over(defaults);
  (void)first.at("training").at("batch");
  CHECK(complaint([&] { first.finish(); }).empty());  // bucket and bath may be for another run
  CHECK(complaint([&] { first.at("training").finish(); }).empty());
  const JsonReader second = read("{}").over(defaults);
  (void)second.at("training").at("bucket");
  CHECK(complaint([&] { second.at("training").finish(); }).empty());
  // batch is known although the run that asked for it brought its own; bath was asked for by
  // nobody.
  CHECK(complaint([&] { defaults.finish(); }) ==
        "d.json: /training/bath: expected one of the known keys (did you mean \"batch\"?), "
        "found an unknown key");
}

TEST_CASE("a comma too few or too many is told, and no letter is cut") {
  const auto said = [](const std::string& text) { return complaint([&] { (void)read(text); }); };
  CHECK_THAT(said(R"({"a": 1 "b": 2})"), ContainsSubstring("expected ',' or '}'"));
  CHECK_THAT(said(R"([1 2])"), ContainsSubstring("expected ',' or ']'"));
  CHECK_THAT(said(R"({"a": 1,})"), ContainsSubstring("unexpected '}' behind a comma"));
  CHECK(said(R"({"a": 1])").find("behind a comma") == std::string::npos);
  const std::string quotes = said("{\u201ca\u201d: 1}");
  CHECK(
      std::ranges::all_of(quotes, [](char one) { return static_cast<unsigned char>(one) < 0x80; }));
}

TEST_CASE("the nearest word is at most one slip in three letters away") {
  using Words = std::vector<std::string>;
  CHECK(meant("stratgy", {"cluster", "strategy"}) == Words{"strategy"});
  CHECK(meant("modle", {"mode", "model"}) == Words{"mode"});  // both one slip away: the first wins
  CHECK(meant("nmae", {"name"}) == Words{"name"});            // two letters swapped are one slip
  CHECK(meant("tp", {"dp", "pp"}).empty());                   // one of two letters is no slip
  CHECK(meant("tp", {"data", "tensor"}) == Words{"tensor"});  // what others call it
  CHECK(meant("bfloat16", {"fp16", "bf16"}) == Words{"bf16"});
  CHECK(meant("Tensor-Parallel", {"pipeline", "tensor"}) == Words{"tensor"});
  CHECK(meant("tp", {"data", "pipeline"}).empty());  // only what may be used here
  CHECK(meant("1F1B", {"gpipe", "1f1b"}) == Words{"1f1b"});
  CHECK(meant("H100", {"a100-sxm4", "h100-sxm5", "h100-pcie"}) == Words{"h100-sxm5", "h100-pcie"});
  CHECK(meant("h", {"h100-sxm5"}).empty());
  CHECK(meant("colour", {"name", "cluster"}).empty());
  CHECK(meant("x", {}).empty());
  CHECK(did_you_mean("dgx", {"dgx-1v", "hgx", "dgx-2", "dgx-a100"}) ==
        " (did you mean \"dgx-1v\", \"dgx-2\" or \"dgx-a100\"?)");
  CHECK(did_you_mean("deepspeed", {"plain", "megatron-deepspeed-fp16"}) ==
        " (did you mean \"megatron-deepspeed-fp16\"?)");
  CHECK(did_you_mean("x", {}).empty());
}

TEST_CASE("a pattern that fits no name is told what would") {
  const std::vector<std::string> names = {"embedding.words", "layers.0.mlp.fc1.weight",
                                          "layers.1.mlp.fc1.weight"};
  CHECK(fitting_patterns("layers.*.mpl.fc1.weight", names) ==
        " (did you mean \"layers.*.mlp.fc1.weight\"?)");
  CHECK(fitting_patterns("nothing", names) ==
        ", such as \"embedding.words\", \"layers.*.mlp.fc1.weight\"");
  CHECK(fitting_patterns("nothing", {}).empty());
}

TEST_CASE("what is meant comes before a long list") {
  const std::vector<std::string> many = {"a1", "b2", "c3", "d4", "e5", "f6", "g7", "h8", "bfloat"};
  CHECK_THAT(complaint([&] { (void)read(R"("bfloatt")").one_of(many); }),
             ContainsSubstring("a known word (did you mean \"bfloat\"?), one of \"a1\", "));
  CHECK_THAT(complaint([&] { (void)read(R"("x")").one_of(many); }),
             ContainsSubstring("expected one of \"a1\", "));
}

TEST_CASE("a required key that is missing names the key that was written for it") {
  const JsonReader reader = read(R"({"global_batch_size": 8, "quesion": "?", "bandwidth": 1})");
  CHECK_THAT(
      complaint([&] { (void)reader.at("global_batch"); }),
      ContainsSubstring("the key \"global_batch\" in place of \"global_batch_size\", found"));
  CHECK_THAT(complaint([&] { (void)reader.at("question"); }),
             ContainsSubstring("the key \"question\" in place of \"quesion\", found"));
  CHECK_THAT(complaint([&] { (void)reader.at("width"); }),
             ContainsSubstring("the key \"width\", found"));
  // What was read already was written for itself.
  const JsonReader known = read(R"({"heads": 8})");
  (void)known.at("heads");
  CHECK_THAT(complaint([&] { (void)known.at("head"); }), ContainsSubstring("\"head\", found"));
}

TEST_CASE("a broken promise tells which") {
  CHECK_NOTHROW(expects(true, "never said"));
  CHECK_THROWS_WITH(expects(false, "ranks >= 1"), "ranks >= 1");
}
