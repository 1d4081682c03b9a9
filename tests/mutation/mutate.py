#!/usr/bin/env python3
"""Changes one operator, comparison or constant at a time and asks whether a test notices.

    tests/mutation/mutate.py                        # 30 mutants of what decides times and plans, seed 1
    tests/mutation/mutate.py -n 10 --seed 7 cost sim/engine.cpp --tests "cost sim"
    tests/mutation/mutate.py -n 0 --at sim/price.cpp:33  # every mutant of one line

Run by hand; nothing calls it. The checkout is left alone: its last commit is cloned to --scratch (kept from run to
run), mutants are made and built (Release) there. For each mutant the test programs of --tests are built and run one
after another, those of its own folder first, until a test fails. Tests that compare what the program prints with what
is written down do not count: --without names them. A test program that takes --patience times as long as on
unchanged code, and ten seconds, hangs, which is noticed, too. A mutant with which one of the test programs does not
compile is drawn anew: no test has noticed it.

--table gets a line for each as soon as it is judged, with the commit that was changed; the same command goes on where it
stopped, and after another commit it judges all of them again. On two cores, with ccache,
a mutant of a source file takes 2 to 10 seconds if its own folder notices, half a minute for each three folders that do not,
and two minutes if it hangs; of a header that all include as long as all of those take to build.

Drawn are, with equal chances: + - * / and their assignments, < <= > >= == !=, && ||, min and max, true and false,
numbers (0 becomes 1, a whole n + 1, another doubles). Passed over are comments, texts, preprocessor lines, template
arguments, static_assert, what is thrown, and all that stands between the brackets of `InputError`, `Refused`, `expects`,
`expected` and functions whose names begin with `refuse`: promises between our functions, which no input breaks, and what
errors say. A binary operator stands between spaces: clang-format sees to that.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import time

root = pathlib.Path(__file__).resolve().parents[2]

swaps = {"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=",
         "&&": "||", "||": "&&", "min": "max", "max": "min", "true": "false", "false": "true",
         "min_element": "max_element", "max_element": "min_element", "==": "!=", "!=": "=="}
orders = ["<", "<=", ">", ">="]

passed_over = re.compile(r"""
    //[^\n]* | /\*.*?\*/                                # comments
  | R"(\w*)\(.*?\)\1" | "(?:\\.|[^"\\\n])*"             # texts
  | '(?:\\.|[^'\\\n])'                                  # one character, not a digit separator
  | ^[ ]*\#(?:[^\n]*\\\n)*[^\n]*                        # preprocessor
  | \b(?:throw|static_assert|using)\b[^;]*;
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
errors = re.compile(r"\b(?:InputError|Refused|expects|expected|refuse\w*)[({]")
sites = re.compile(r"""
    (?<=\s)(?:[-+*/]=?|[<>]=?|[=!]=|&&|\|\|)(?=\s)      # binary operators stand between spaces
  | \bstd::(?:ranges::)?(?P<extreme>(?:min|max)(?:_element)?)\b
  | \b(?:true|false)\b
  | (?<![\w.'])(?:\d[\d']*\.?\d*(?:e[-+]?\d+)?)(?=\b|_|[^\w.'])
""", re.VERBOSE)


def blank(text, begin, end):
    """As long as before; unchanged where there is nothing between."""
    end = max(begin, end)
    return text[:begin] + re.sub(r"[^\n]", "\0", text[begin:end]) + text[end:]


def closing(text, begin, pair):
    """Where the bracket at `begin` closes; -1: nowhere."""
    depth = 0
    if text[begin] != pair[0]:  # made NUL, with a bracket around it
        return -1
    for i in range(begin, len(text)):
        depth += (text[i] == pair[0]) - (text[i] == pair[1])
        if depth == 0:
            return i
        if pair == "<>" and text[i] in ";{}":
            return -1
    return -1


def code_alone(text):
    """The text with all that is passed over made NUL, so that places stay."""
    for found in reversed(list(passed_over.finditer(text))):
        text = blank(text, *found.span())
    for found in errors.finditer(text):
        pair = "()" if text[found.end() - 1] == "(" else "{}"
        text = blank(text, found.end(), closing(text, found.end() - 1, pair))
    for found in re.finditer(r"(?:\w|\btemplate )<(?=[^\s<=])", text):
        text = blank(text, found.end(), closing(text, found.end() - 1, "<>"))
    return text


def changed_number(word):
    digits = word.replace("'", "")
    if re.fullmatch(r"\d+", digits):
        return str(int(digits) + 1)
    return repr(2 * float(digits)) if float(digits) else "1.0"


def mutants_of(file):
    """(file, place, before, choices of what comes instead) of all sites of a file."""
    text = pathlib.Path(file).read_text()
    result = []
    for found in sites.finditer(code_alone(text)):
        place, word = found.span()[0], found.group()
        if found.group("extreme"):
            place, word = found.start("extreme"), found.group("extreme")
        if word in orders:
            after = [other for other in orders if other != word]
        elif word in swaps:
            after = [swaps[word]]
        else:
            after = [changed_number(word)]
        result.append((file, place, word, after))
    return result


def sources(paths):
    for path in map(pathlib.Path, paths):
        files = [path] if path.is_file() else sorted(
            file for file in path.rglob("*") if file.suffix in (".cpp", ".hpp"))
        if not files:
            sys.exit(f"mutate: no sources in {path}")
        yield from map(str, files)


def on_lines(lines):
    """Every mutant of some lines."""
    for file, line in (at.rsplit(":", 1) for at in lines):
        for site in mutants_of(file):
            if line_of(site) == int(line):
                yield from ((*site[:3], other) for other in site[3])


def drawn(arguments):
    """All mutants in an order that the seed alone decides."""
    all_sites = [site for file in sources(arguments.sources) for site in mutants_of(file)]
    chance = random.Random(arguments.seed)
    chance.shuffle(all_sites)
    return [(file, place, word, chance.choice(after)) for file, place, word, after in all_sites]


def line_of(site):
    return pathlib.Path(site[0]).read_text().count("\n", 0, site[1]) + 1


class Scratch:
    """A clone of the last commit, with a build folder of its own. All commands run in it."""

    def __init__(self, folder, build_prefix):
        folder, self.prefix, self.seconds = pathlib.Path(folder).resolve(), build_prefix.split(), {}
        if folder == root:
            sys.exit("mutate: the scratch folder is the checkout itself")
        if not (folder / ".git").exists():
            run("git", "clone", "--quiet", "--shared", root, folder)
            run("git", "-C", folder, "config", "stratagem.mutants", "yes")
        os.chdir(folder)
        if subprocess.run(["git", "config", "stratagem.mutants"], capture_output=True).returncode != 0:
            sys.exit(f"mutate: {folder} is a checkout that this script has not made")
        run("git", "fetch", "--quiet", root, "HEAD")
        run("git", "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
        self.commit = run("git", "rev-parse", "--short=12", "HEAD").strip()
        if not pathlib.Path("build/release/CMakeCache.txt").exists():
            run("cmake", "--preset", "release")

    def builds(self, test):
        command = [*self.prefix, "cmake", "--build", "build/release", "--target", f"{test}_test"]
        return subprocess.run(command, capture_output=True).returncode == 0

    def failure(self, test, without, patience):
        """The name of the first test that fails, or None."""
        limit = patience * self.seconds.get(test, 120) + 10
        command = ["timeout", "--kill-after=1", f"{limit}", f"build/release/tests/{test}/{test}_test",
                   "--abort", "--reporter", "xml", *(f"~{name}" for name in without)]
        begin = time.monotonic()
        done = subprocess.run(command, env=os.environ | {"RC_PARAMS": "seed=1"}, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.seconds.setdefault(test, time.monotonic() - begin)
        if done.returncode == 0:
            return None
        hangs = "a hang in " if done.returncode in (124, 137) else ""
        return hangs + (names_in(done.stdout) or [test])[-1]


def run(*command):
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"mutate: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def names_in(xml):
    names = re.findall(r'<TestCase name="([^"]*)"', xml)
    for escaped, plain in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        names = [name.replace(escaped, plain) for name in names]
    return names


def judged(scratch, mutant, tests, arguments):
    """(result, test): killed, survived, or does not compile."""
    file, place, before, after = mutant
    target = pathlib.Path(file)
    text = target.read_text()
    target.write_text(text[:place] + after + text[place + len(before):])
    try:
        own = file.split("/")[0]
        for test in sorted(tests, key=lambda test: test != own):
            if not scratch.builds(test):
                return "does not compile", f"{test}_test"
            failed = scratch.failure(test, arguments.without, arguments.patience)
            if failed:
                return "killed", f"{test}: {failed}"
        return "survived", ""
    finally:
        target.write_text(text)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", help="folders and files that mutants are drawn from",
                        default=["cost", "placement", "lowering", "program", "sim"])
    parser.add_argument("-n", type=int, default=30, help="mutants that compile (30)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at", nargs="*", default=[], metavar="FILE:LINE", help="every mutant of lines, first")
    parser.add_argument("--tests", default="cost placement strategies program lowering sim study report execute scenarios main",
                        help="folders of tests, in order; a mutant's own one comes first")
    parser.add_argument("--without", nargs="*", default=["what the documents show*"], metavar="TEST",
                        help="names of tests that do not count")
    parser.add_argument("--patience", type=float, default=5)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutant after that long")
    parser.add_argument("--scratch", default="/tmp/stratagem-mutants")
    parser.add_argument("--table", default="out/mutants.tsv")
    parser.add_argument("--build-prefix", default="", help="put before each build, such as a lock or nice")
    return parser.parse_args()


class Table:
    """What came of each mutant of a commit, written down at once, so that no mutant is judged twice."""

    def __init__(self, file):
        self.file, self.commit = pathlib.Path(file).resolve(), None
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.rows = {tuple(row[:4]): row for row in (line.split("\t") for line in lines)}

    def result(self, mutant, judge):
        file, place, before, after = mutant
        key = (self.commit, f"{file}:{line_of(mutant)}", f"{before} at {place}", after)
        if key not in self.rows:
            begin = time.monotonic()
            self.rows[key] = [*key, *judge(mutant), f"{time.monotonic() - begin:.0f} s"]
            line = "\t".join(self.rows[key])
            with self.file.open("a") as out:
                out.write(line + "\n")
            print(line, flush=True)
        return self.rows[key][len(key)]


def main():
    arguments = read_arguments()
    table, tests = Table(arguments.table), arguments.tests.split()
    scratch = Scratch(arguments.scratch, arguments.build_prefix)
    table.commit = scratch.commit
    for test in tests:  # how long each takes on unchanged code, on which all must pass
        if not scratch.builds(test) or scratch.failure(test, arguments.without, arguments.patience):
            sys.exit(f"mutate: {test}_test does not build, or fails on unchanged code")
    end = time.monotonic() + 60 * arguments.minutes
    for mutants, most in ((on_lines(arguments.at), float("inf")), (drawn(arguments), arguments.n)):
        results = []
        for mutant in mutants:
            if len(results) == most or time.monotonic() > end:
                break
            result = table.result(mutant, lambda one: judged(scratch, one, tests, arguments))
            if result != "does not compile":
                results.append(result)
        print(f"mutate: {results.count('killed')} of {len(results)} killed; all of them: {table.file}")


if __name__ == "__main__":
    main()
