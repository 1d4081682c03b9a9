"""What simulate and search return."""
import html
import json
from collections.abc import Mapping

from . import _core


def filled(options, values):
    """`options`, an object of the library's, with these members; None leaves its own."""
    for name, value in values.items():
        if value is not None:
            setattr(options, name, value)
    return options


class Data:
    """Equal to another of its kind with the same members; can be copied and pickled."""

    def __eq__(self, other):
        return type(other) is type(self) and vars(other) == vars(self)


class Run(Mapping):
    """One run: figures as attributes, in SI units and bytes, or by the keys of the JSON report.

    `run.iteration_time` is run["iteration_time_s"]: a unit at the end of a key may be left out.
    A figure that the run does not have (it was refused) is None.
    """

    UNITS = ("_s", "_bytes")

    def __init__(self, figures):
        self._figures = figures

    def __getitem__(self, key):
        return self._figures[key]

    def __iter__(self):
        return iter(self._figures)

    def __len__(self):
        return len(self._figures)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        for key in (name, *(name + unit for unit in self.UNITS)):
            if key in self._figures:
                return self._figures[key]
        if name in FIGURES:
            return None
        raise AttributeError(f"a run has no {name!r}; it has {', '.join(self._figures)}")

    def __dir__(self):
        return [*super().__dir__(), *self._figures]

    def __repr__(self):
        time = f", {self.iteration_time:.4g} s" if self["status"] == "ok" else ""
        return f"<Run {self['name']!r}: {verdict(self)}{time}>"


# Figures that a run may lack: it was refused, or nothing is its baseline.
FIGURES = ("iteration_time", "makespan", "samples_per_s", "tokens_per_s", "model_tflops_per_gpu",
           "hardware_tflops_per_gpu", "mfu", "hfu", "scaling_efficiency", "speedup",
           "bubble_fraction", "exposed_communication", "peak_memory", "peak_used", "fits", "gpus")
COLUMNS = ("name", "verdict", "gpus", "iteration_time_s", "tokens_per_s", "mfu",
           "bubble_fraction", "exposed_communication_s", "peak_used_bytes", "reason")
# What is told of a run that does not fit or was refused: what it would take is no prediction.
OF_NO_RUN = ("name", "gpus", "peak_used_bytes", "reason")
VERDICTS = {"ok": "fits", "out_of_memory": "does not fit", "refused": "refused"}


def verdict(run):
    return VERDICTS[run["status"]] + (", tight" if run.get("tight") else "")


def row_of(run):
    """The row of a run in a table for people."""
    shown = COLUMNS if run["status"] == "ok" else OF_NO_RUN
    return {"verdict": verdict(run), **{key: run[key] for key in shown if key in run}}


def table(rows, columns):
    """Rows, which are dicts, as a table of HTML."""
    def cell(value):
        if isinstance(value, float):
            value = f"{value:.4g}"
        return "<td>" + html.escape("" if value is None else str(value)) + "</td>"

    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(cell(row.get(column)) for column in columns) + "</tr>"
                   for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def frame(rows):
    """Rows as a pandas.DataFrame."""
    import pandas
    return pandas.DataFrame(rows)


def flat(figures, before=""):
    """Members of objects as columns "training.precision"; lists are left out."""
    row = {}
    for key, value in figures.items():
        if isinstance(value, Mapping):
            row.update(flat(value, before + key + "."))
        elif not isinstance(value, list):
            row[before + key] = value
    return row


class Picture(Data):
    """A page of HTML, which a notebook shows in a frame."""

    def __init__(self, page):
        self.page = page

    def save(self, file):
        """Writes the page, which needs no other file."""
        with open(file, "w", encoding="utf-8") as out:
            out.write(self.page)

    def _repr_html_(self):
        return (f'<iframe srcdoc="{html.escape(self.page)}" width="100%" height="720" '
                'style="border: 0"></iframe>')


class Report(Data):
    """The runs of a scenario, predicted.

    `runs` has them by name, `json` is what `stratagem simulate --json` writes, `records()` one flat
    dict a run, for pandas.DataFrame or csv.
    """

    def __init__(self, text, csv, question, options):
        self.json = json.loads(text)
        self.text = text
        self.runs = {run["name"]: Run(run) for run in self.json["runs"]}
        self._csv = csv
        self._question = question  # text, folder and name
        self._options = options

    def records(self):
        return [flat(run) for run in self.json["runs"]]

    def to_frame(self):
        """A pandas.DataFrame with a row for each run."""
        return frame(self.records())

    def to_csv(self, file=None):
        """What `stratagem simulate --csv` writes: all runs, times only of those that fit.

        Returns the text, or writes it to a file.
        """
        if file is None:
            return self._csv
        with open(file, "w", encoding="utf-8", newline="") as out:
            out.write(self._csv)

    def picture(self):
        """The page of `stratagem simulate --report`; all runs are simulated again for it."""
        return Picture(_core.simulated_page(_core.Scenario(*self._question),
                                            filled(_core.Asked(), self._options)))

    def _repr_html_(self):
        rows = [row_of(run) for run in self.json["runs"]]
        return table(rows, [key for key in COLUMNS if any(key in row for row in rows)])

    def __repr__(self):
        return f"<Report of {', '.join(map(repr, self.runs.values()))}>"


class Search(Data):
    """The best plans of a space: `best`, a list of dicts, and `plans`, a scenario with them."""

    def __init__(self, text, plans, page):
        self.json = json.loads(text)
        self.text = text
        self._page = page
        self.plans = json.loads(plans) if plans else None

    @property
    def best(self):
        return self.json["best"]

    def records(self):
        return [flat(plan) for plan in self.best]

    def to_frame(self):
        """A pandas.DataFrame with a row for each of the best plans."""
        return frame(self.records())

    def picture(self):
        """The page of `stratagem search --report`."""
        return Picture(self._page)

    def _repr_html_(self):
        rows = self.records()
        columns = [key for key in (rows[0] if rows else {}) if not key.startswith("settings.")]
        return table(rows, columns)


class Validation(Data):
    """Predictions beside measurements: `statistics`, a dict for each figure of a group."""

    def __init__(self, text, page):
        self.json = json.loads(text)
        self.text = text
        self._page = page

    @property
    def statistics(self):
        return [{"group": group["group"], **flat(one)} for group in self.json["groups"]
                for one in group["statistics"]]

    def records(self):
        """A flat dict for each figure that was measured: predicted, measured and error."""
        return [{"group": group["group"], **flat(one)} for group in self.json["groups"]
                for one in group["figures"]]

    def to_frame(self):
        """A pandas.DataFrame with a row for each figure that was measured."""
        return frame(self.records())

    def picture(self):
        """The page of `stratagem validate --report`."""
        return Picture(self._page)

    def _repr_html_(self):
        rows = self.statistics
        return table(rows, list(rows[0]) if rows else [])


class Imported(Data):
    """A scenario from other programs' files, and what became of their settings."""

    def __init__(self, text):
        found = json.loads(text)
        self.scenario = found["scenario"]
        self.assumed = {note["what"]: note["why"] for note in found["assumed"]}
        self.left_out = {note["what"]: note["why"] for note in found["left_out"]}
        self.no_matter = found["no_matter"]
