"""Predicts what parallel training plans do on GPU clusters, before any is rented.

    import stratagem

    report = stratagem.simulate("scenario.json", set={"tensor": 4})
    report.runs["tp4"].iteration_time            # seconds
    stratagem.simulate({"question": "...", "runs": [...]}).to_frame()

Scenarios are dicts, or paths of files; docs/reference/scenario.md has their keys.
"""
import json
import os

from . import _core
from .answers import Imported, Picture, Report, Run, Search
from .errors import Error

__all__ = ["Error", "Imported", "Picture", "Report", "Run", "Search", "import_files", "names",
           "search", "simulate", "use_library", "version"]


def _scenario(scenario, folder):
    if isinstance(scenario, (str, os.PathLike)):
        path = os.fspath(scenario)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise Error(f"{path}: expected a file that can be read, found {error.strerror}",
                        "", "a file that can be read", str(error.strerror)) from None
        return _core.Scenario(text, folder or os.path.dirname(path) or ".", os.path.basename(path))
    return _core.Scenario(json.dumps(scenario), folder or ".", "scenario")


def _words(values, several):
    """{"tensor": 4} as ["tensor=4"]; lists of such words are taken as they are."""
    if values is None:
        return []
    if isinstance(values, str):
        return [values]
    if not isinstance(values, dict):
        return list(values)

    def word(value):
        return value if isinstance(value, str) else json.dumps(value)

    def words(value):
        return ",".join(map(word, value)) if isinstance(value, (list, tuple)) else word(value)

    return [f"{key}=" + (words(value) if several else word(value))
            for key, value in values.items()]


def simulate(scenario, *, set=None, grid=None, run=None, remedies=False, why=False, exact=False,
             unfolded=False, jobs=0, folder=None):
    """Predicts time and memory of every run of a scenario. Returns a Report.

    scenario  a dict, or the path of a file
    set       {"tensor": 4}: keys of every run; grid {"tensor": [1, 2]}: several values of each
    run       the name of the only run to simulate
    remedies  also find changes with which runs fit that do not; why: what would speed them up
    jobs      runs at once (0: as many as there are processors)
    folder    where names are sought before the library (default: beside the file)
    Raises Error for input that is wrong; a run whose settings do not go together is "refused".
    """
    asked = _core.Asked()
    asked.set, asked.grid = _words(set, False), _words(grid, True)
    asked.run = run or ""
    asked.remedies, asked.why = remedies, why
    asked.exact, asked.unfolded, asked.jobs = exact, unfolded, jobs
    question = _scenario(scenario, folder)
    return Report(_core.simulate(question, asked), lambda: _core.simulated_page(question, asked))


def search(scenario, *, least="time", best=10, why=False, store=None, jobs=0, folder=None):
    """Finds the best plans of a scenario's space ("search"). Returns a Search.

    least  "time", "cost" or "memory"; store: a SQLite file with which a search goes on
    """
    sought = _core.Sought()
    sought.least, sought.best, sought.why = least, best, why
    sought.store, sought.jobs = os.fspath(store) if store else "", jobs
    found = _core.search(_scenario(scenario, folder), sought)
    return Search(found.json, found.plans)


def import_files(*files, set=None, format=""):
    """A scenario from launch scripts and configurations of other programs. Returns an Imported."""
    return Imported(_core.import_files([os.fspath(file) for file in files], _words(set, False),
                                       format))


def names(what):
    """Names that a scenario may have: of "profiles", "stacks", "models", "clusters",
    "schedules", "precisions" or "optimizers"."""
    return _core.names(what)


def use_library(folder):
    """Takes profiles, stacks, nodes and plans from a folder, for all that follows."""
    _core.use_library(os.fspath(folder))


def version():
    return _core.version()
