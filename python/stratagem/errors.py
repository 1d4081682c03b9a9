"""What a user's input can do wrong."""
import reprlib


class Error(ValueError):
    """Input that cannot be understood, or whose parts do not go together.

    str(error) is one line: where, what was expected, what was found.
    """

    def __init__(self, line, path="", expected="", found=""):
        super().__init__(line)
        self.path = path  # JSON pointer; "": the whole input
        self.expected = expected
        self.found = found


def wrong(path, expected, value):
    """The Error of a value that is not what is expected there."""
    found = " ".join(reprlib.repr(value).split())
    place = f"{path}: " if path else ""
    return Error(f"{place}expected {expected}, found {found}", path, expected, found)
