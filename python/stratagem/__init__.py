"""Predicts what parallel training plans do on GPU clusters, before any is rented.

    import stratagem

    report = stratagem.simulate("scenario.json", set={"tensor": 4})
    report.runs["tp4"].iteration_time            # seconds
    stratagem.simulate({"question": "...", "runs": [...]}).to_frame()

Scenarios are dicts, or paths of files; docs/reference/scenario.md has their keys.
"""
from . import _core
from .answers import Imported, Picture, Report, Run, Search, filled
from .arguments import checked, question
from .errors import Error

__all__ = ["Error", "Imported", "Picture", "Report", "Run", "Search", "import_files", "names",
           "search", "simulate", "use_library", "version"]


@checked
def simulate(scenario, *, set=None, grid=None, run=None, remedies=False, why=False, exact=False,
             unfolded=False, jobs=0, folder=None):
    """Predicts time and memory of every run of a scenario. Returns a Report.

    scenario  a dict, or the path of a file
    set       {"tensor": 4}: keys of every run; grid {"tensor": [1, 2]}: several values of each
    run       the name of the only run to simulate
    remedies  also find changes with which runs fit that do not; why: what would speed them up
    jobs      runs at once (0: as many as there are processors)
    folder    where names are sought before the library (default: beside the file)
    Raises Error for input that is wrong, also for an argument of another type; a run whose settings
    do not go together is "refused".
    """
    options = {"set": set, "grid": grid, "run": run, "remedies": remedies, "why": why,
               "exact": exact, "unfolded": unfolded, "jobs": jobs}
    asked_of = question(scenario, folder)
    predicted = _core.simulate(_core.Scenario(*asked_of), filled(_core.Asked(), options))
    return Report(predicted.json, predicted.csv, asked_of, options)


@checked
def search(scenario, *, set=None, least="time", best=10, why=False, store=None, jobs=0,
           folder=None):
    """Finds the best plans of a scenario's space ("search"). Returns a Search.

    set    {"global_batch": 256}: keys of every plan, over what the scenario says
    least  "time", "cost" or "memory"; store: a SQLite file with which a search goes on
    """
    sought = filled(_core.Sought(), {"set": set, "least": least, "best": best, "why": why,
                                     "store": store, "jobs": jobs})
    found = _core.search(_core.Scenario(*question(scenario, folder)), sought)
    return Search(found.json, found.plans, found.page)


@checked
def import_files(*files, set=None, format=""):
    """A scenario from launch scripts and configurations of other programs. Returns an Imported."""
    return Imported(_core.import_files(list(files), set or [], format))


@checked
def names(what):
    """Names that a scenario may have: of "profiles", "stacks", "models", "clusters",
    "schedules", "precisions" or "optimizers"."""
    return _core.names(what)


@checked
def use_library(folder):
    """Takes profiles, stacks, nodes and plans from a folder, for all that follows."""
    _core.use_library(folder)


def version():
    return _core.version()
