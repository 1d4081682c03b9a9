#!/usr/bin/env python3
"""Fails for a class, a struct's data members or a function over the limits of CONTRIBUTING.md.

    tests/layers/sizes.py ROOT           names them
    tests/layers/sizes.py ROOT --list    prints all, the largest first, and how long functions are

It reads what clang-format has laid out. A brace opens a namespace, a class, a function or something
else, which the text before it tells. A function is counted from the line on which its declaration
begins; lambdas belong to their function."""

import pathlib
import re
import sys

FOLDERS = """base topology model cost placement strategies program lowering sim study kernels
             calibrate execute search report imports commands""".split()
LIMITS = {"lines of a class": 250, "data members": 15, "lines of a function": 60}
LONG_FUNCTIONS = ["kernels"]  # a kernel of a GPU is one loop nest, whose steps share registers

NO_CODE = re.compile(
    r'R"(\w*)\((?s:.*?)\)\1"|//[^\n]*|/\*(?s:.*?)\*/|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'|^ *#(?:\\\n|[^\n])*", re.MULTILINE)
ACCESS = r"(?:public|private|protected)\s*:(?!:)"
CLASS = re.compile(r"(?:template )?(?:class|struct|union)\b(?: alignas\([^)]*\))?"
                   r" ?([\w:]*)(?: final)?(?: ?:.*)?$")
BEHIND_PARAMETERS = re.compile(
    r"\)(?: (?:const|noexcept|override|final|mutable|try))*(?: ?->[^=]*| ?: ?\w.*)?$")
NO_MEMBER = re.compile(r"(?:using|typedef|static|friend|template|enum|static_assert|explicit"
                       r"|virtual)\b|(?:class|struct) \w+$|[^={]*\(|.*\boperator\b")


def flat(text):
    """A declaration on one line, without attributes, access and the arguments of templates."""
    text = re.sub(r"\s+", " ", re.sub(r"\[\[[^]]*\]\]|" + ACCESS, " ", text)).strip()
    text = re.sub(r"operator ?[<>=!+*/-]+", "operator", text)
    while (shorter := re.sub(r"(\w|^) ?<[^<>;{}]*>", r"\1", text)) != text:
        text = shorter
    return text


def opened(head):
    """What a brace behind this text opens, and its name."""
    head = flat(head)
    if re.match(r"(inline )?namespace\b|extern$", head):
        return "namespace", ""
    if found := CLASS.match(head):
        return "class", found[1]
    found = re.search(r"([\w:~]+) ?\(", head)
    function = found and BEHIND_PARAMETERS.search(head) and "=" not in head[:found.start()]
    if not function or re.match(r"(if|for|while|switch)\b", head):
        return "other", ""
    return "function", found[1]


def members(statement):
    """How many data members a statement of a class declares."""
    statement = re.sub(r"alignas\([^)]*\)", "", flat(statement))
    if not statement or NO_MEMBER.match(statement):
        return 0
    while (shorter := re.sub(r"[({\[][^(){}\[\]]*[)}\]]", "", statement)) != statement:
        statement = shorter
    return 1 + statement.count(",")


class Scope:
    def __init__(self, kind, name, start, inside):
        self.kind, self.name, self.start = kind, name, start
        self.statement = inside  # where the one begins that is read
        self.parentheses = self.members = 0


def sizes_of(text):
    """(kind, name, first line, lines, data members) of each class and function."""
    text = NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    scopes = [Scope("namespace", "", 0, 0)]
    for at, letter in enumerate(text):
        scope = scopes[-1]
        scope.parentheses += (letter == "(") - (letter == ")")
        in_code = scope.kind in ("function", "other")
        if letter == "{":
            head = text[scope.statement:at]
            of_code = in_code and not re.match(r"\s*(class|struct|union)\b", head)
            kind, name = ("other", "") if scope.parentheses or of_code else opened(head)
            labels = re.match(r"(\s|" + ACCESS + ")*", head)
            scopes.append(Scope(kind, name, scope.statement + labels.end(), at + 1))
        elif letter == "}":
            closed = scopes.pop()
            scope = scopes[-1]
            if closed.kind in ("class", "function"):
                first = text.count("\n", 0, closed.start) + 1
                names = [one.name for one in scopes if one.kind == "class"] + [closed.name]
                lines = text.count("\n", 0, at) + 2 - first
                yield closed.kind, "::".join(names), first, lines, closed.members
            of_code = scope.kind in ("function", "other") and not scope.parentheses
            if closed.kind != "other" or of_code:
                scope.statement = at + 1
        elif letter == ";" and not scope.parentheses:
            if scope.kind == "class":
                scope.members += members(text[scope.statement:at])
            scope.statement = at + 1
    assert len(scopes) == 1, "braces"


def main():
    root = pathlib.Path(sys.argv[1])
    found = {what: [] for what in LIMITS}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".hpp", ".cpp", ".cu", ".cuh"):
                continue
            for kind, name, line, lines, data in sizes_of(path.read_text()):
                where = f"{path.relative_to(root)}:{line}"
                if kind == "class":
                    found["lines of a class"].append((lines, name, where))
                    found["data members"].append((data, name, where))
                elif folder not in LONG_FUNCTIONS:
                    found["lines of a function"].append((lines, name, where))
    if "--list" in sys.argv:
        for what, sizes in found.items():
            print(what)
            for size, name, where in sorted(sizes, reverse=True)[:40]:
                print(f"{size:6} {name}  {where}")
        lengths = sorted(size for size, _, _ in found["lines of a function"])
        print(f"{len(lengths)} functions, 95 % of at most {lengths[len(lengths) * 95 // 100]}"
              f" lines, {sum(length > 40 for length in lengths)} over 40")
    over = [f"{where}: {name}: {size} {what}, at most {LIMITS[what]}"
            for what, sizes in found.items() for size, name, where in sizes if size > LIMITS[what]]
    print(*over, f"{sum(map(len, found.values()))} sizes, {len(over)} wrong", sep="\n")
    return 1 if over or not any(found.values()) else 0


sys.exit(main())
