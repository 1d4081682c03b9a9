"""Predicts what parallel training plans do on GPU clusters, before any is rented.

    import stratagem

    report = stratagem.simulate("scenario.json", set={"tensor": 4})
    report.runs["tp4"].iteration_time            # seconds
    stratagem.simulate({"question": "...", "runs": [...]}).to_frame()

Scenarios are dicts, or paths of files; docs/reference/scenario.md has their keys.
"""
from . import _core
from .answers import Imported, Picture, Report, Run, Search, Validation, filled
from .arguments import checked, question
from .errors import Error
from .progress import told

__all__ = ["Error", "Imported", "Picture", "Report", "Run", "Search", "Validation", "import_files", "names",
           "search", "simulate", "use_library", "validate", "version"]


@checked
def simulate(scenario, *, set=None, grid=None, run=None, remedies=False, why=False, exact=False,
             unfolded=False, jobs=0, folder=None, progress=False):
    """Predicts time and memory of every run of a scenario. Returns a Report.

    scenario  a dict, or the path of a file
    set       {"tensor": 4}: keys of every run; grid {"tensor": [1, 2]}: several values of each
    run       the name of the only run to simulate
    remedies  also find changes with which runs fit that do not; why: what would speed them up
    jobs      runs at once (0: as many as there are processors)
    folder    where names are sought before the library (default: beside the file)
    progress  True writes how far it is; a function is called with steps ("runs"), done and of
    Raises Error for input that is wrong, also for an argument of another type; a run whose settings
    do not go together is "refused".
    """
    options = {"set": set, "grid": grid, "run": run, "remedies": remedies, "why": why,
               "exact": exact, "unfolded": unfolded, "jobs": jobs}
    asked_of = question(scenario, folder)
    predicted = told(progress, lambda tell: _core.simulate(
        _core.Scenario(*asked_of), filled(_core.Asked(), {**options, "tell": tell})))
    return Report(predicted.json, predicted.csv, asked_of, options)


@checked
def search(scenario, *, set=None, least="time", best=10, why=False, store=None, jobs=0,
           folder=None, progress=False):
    """Finds the best plans of a scenario's space ("search"). Returns a Search.

    set    {"global_batch": 256}: keys of every plan, over what the scenario says
    least  "time", "cost" or "memory"; store: a SQLite file with which a search goes on
    """
    asked_of = question(scenario, folder)
    found = told(progress, lambda tell: _core.search(
        _core.Scenario(*asked_of), filled(_core.Sought(), {
            "set": set, "least": least, "best": best, "why": why, "store": store, "jobs": jobs,
            "tell": tell})))
    return Search(found.json, found.plans, found.page)


@checked
def validate(*scenarios, figure="", group="", jobs=0, progress=False):
    """Predictions beside what was "measured", of scenario files and folders. Returns a Validation.

    figure  this one alone, such as "iteration_time", or "fits"
    group   groups only whose names contain this
    """
    found = told(progress, lambda tell: _core.validate(list(scenarios), filled(
        _core.Compared(), {"figure": figure, "group": group, "jobs": jobs, "tell": tell})))
    return Validation(found.json, found.page)


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
