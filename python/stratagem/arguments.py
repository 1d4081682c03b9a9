"""What the functions of the module may be given: a table of all arguments, and the check of it."""
import functools
import inspect
import json
import math
import numbers
import operator
import os
from collections.abc import Mapping

from .errors import Error, wrong


def plain(value, path):
    """A value as JSON has it. Numbers of other libraries become Python's."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(one, f"{path}/{index}") for index, one in enumerate(value)]
    if isinstance(value, Mapping):
        return {key_of(key, path): plain(one, f"{path}/{key}") for key, one in value.items()}
    try:
        return number(value)
    except TypeError:
        raise wrong(path, "a value of JSON", value) from None


def key_of(key, path):
    if not isinstance(key, str):
        raise wrong(path, "keys that are words", key)
    return key


def number(value):
    if hasattr(value, "__index__"):
        return operator.index(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise TypeError


def of(*types):
    """Takes values of these types as they are."""
    def take(value):
        if not isinstance(value, types):
            raise TypeError
        return value
    return take


def whole(value):
    taken = operator.index(value)
    if isinstance(value, bool) or not -2**31 <= taken < 2**31:
        raise TypeError
    return taken


def word(value, path):
    value = plain(value, path)
    return value if isinstance(value, str) else json.dumps(value)


def word_of_several(value, path):
    several = value if isinstance(value, (list, tuple, range)) else [value]
    return ",".join(word(one, path) for one in several)


def settings(name, word_of):
    """Takes {"tensor": 4} as ["tensor=4"], and such words as they are."""
    def take(value):
        if isinstance(value, Mapping):
            return [f"{key_of(key, name)}={word_of(one, f'{name}/{key}')}"
                    for key, one in value.items()]
        words = [value] if isinstance(value, str) else list(value)
        return [of(str)(one) for one in words]
    return take


def listener(value):
    if not isinstance(value, bool) and not callable(value):
        raise TypeError
    return value


def paths(values):
    """Paths, or one list of paths."""
    alone = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
    return [os.fsdecode(file) for file in alone]


TRUTH = ("True or False", of(bool))
WHOLE = ("a whole number below 2**31", whole)
TEXT = ("a word", of(str))
PATH = ("a path", os.fsdecode)
# For each argument what is expected, and a function that makes of it what the library takes; it
# raises TypeError for anything else.
EXPECTED = {
    "scenario": ("a dict or the path of a file", of(Mapping, str, os.PathLike)),
    "set": ('a dict such as {"tensor": 4}, or words such as "tensor=4"', settings("/set", word)),
    "grid": ('a dict such as {"tensor": [1, 2]}, or words such as "tensor=1,2"',
             settings("/grid", word_of_several)),
    "run": ("the name of a run", of(str)),
    "remedies": TRUTH,
    "why": TRUTH,
    "exact": TRUTH,
    "unfolded": TRUTH,
    "jobs": WHOLE,
    "progress": ("True, or a function of steps, done and of", listener),
    "scenarios": ("paths of scenarios, or of folders of them", paths),
    "figure": TEXT,
    "group": TEXT,
    "best": WHOLE,
    "least": ("time, cost or memory", of(str)),
    "folder": PATH,
    "store": PATH,
    "files": ("paths of files", paths),
    "format": TEXT,
    "what": TEXT,
}


def taken(name, value):
    expected, take = EXPECTED[name]
    try:
        return take(value)
    except TypeError:
        raise wrong("/" + name, expected, value) from None


def checked(function):
    """The function, called with what EXPECTED makes of its arguments; defaults stay as they are."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*positional, **named):
        for name, value in named.items():
            if name not in signature.parameters and "set" in signature.parameters:
                raise wrong("/" + name, f'an argument of {function.__name__}, or set={{"{name}": '
                            f"{value!r}}}", value)
        asked = signature.bind(*positional, **named)
        for name, value in asked.arguments.items():
            if value is not signature.parameters[name].default:
                asked.arguments[name] = taken(name, value)
        return function(*asked.args, **asked.kwargs)
    return call


def question(scenario, folder):
    """Text, folder and name of a scenario."""
    if isinstance(scenario, Mapping):
        return json.dumps(plain(scenario, "")), folder or ".", "scenario"
    path = os.fspath(scenario)
    if str(path).lstrip().startswith("{"):
        raise wrong("/scenario", "a dict (json.loads makes one) or the path of a file", scenario)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise Error(f"{path}: expected a file that can be read, found {found}",
                    "", "a file that can be read", found) from None
    return text, folder or os.path.dirname(path) or ".", os.path.basename(path)
