"""What simulate and search return."""
import html
import json
from collections.abc import Mapping


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
        time = self.iteration_time
        return f"<Run {self['name']!r}: {self['status']}" + (f", {time:.4g} s>" if time else ">")


# Figures that a run may lack: it was refused, or nothing is its baseline.
FIGURES = ("iteration_time", "makespan", "samples_per_s", "tokens_per_s", "model_tflops_per_gpu",
           "hardware_tflops_per_gpu", "mfu", "hfu", "scaling_efficiency", "speedup",
           "bubble_fraction", "exposed_communication", "peak_memory", "peak_used", "fits", "gpus")
COLUMNS = ("name", "status", "gpus", "iteration_time_s", "tokens_per_s", "mfu",
           "bubble_fraction", "exposed_communication_s", "peak_used_bytes", "fits")


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


class Picture:
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


class Report:
    """The runs of a scenario, predicted.

    `runs` has them by name, `json` is what `stratagem simulate --json` writes, `records()` one flat
    dict a run, for pandas.DataFrame or csv.
    """

    def __init__(self, text, page):
        self.json = json.loads(text)
        self.text = text
        self.runs = {run["name"]: Run(run) for run in self.json["runs"]}
        self._page = page

    def records(self):
        return [flat(run) for run in self.json["runs"]]

    def to_frame(self):
        """A pandas.DataFrame with a row for each run."""
        return frame(self.records())

    def picture(self):
        """The page of `stratagem simulate --report`; all runs are simulated again for it."""
        return Picture(self._page())

    def _repr_html_(self):
        return table(self.json["runs"], COLUMNS)

    def __repr__(self):
        return f"<Report of {', '.join(map(repr, self.runs.values()))}>"


class Search:
    """The best plans of a space: `best`, a list of dicts, and `plans`, a scenario with them."""

    def __init__(self, text, plans):
        self.json = json.loads(text)
        self.text = text
        self.plans = json.loads(plans) if plans else None

    @property
    def best(self):
        return self.json["best"]

    def records(self):
        return [flat(plan) for plan in self.best]

    def to_frame(self):
        """A pandas.DataFrame with a row for each of the best plans."""
        return frame(self.records())

    def _repr_html_(self):
        rows = self.records()
        columns = [key for key in (rows[0] if rows else {}) if not key.startswith("settings.")]
        return table(rows, columns)


class Imported:
    """A scenario from other programs' files, and what became of their settings."""

    def __init__(self, text):
        found = json.loads(text)
        self.scenario = found["scenario"]
        self.assumed = {note["what"]: note["why"] for note in found["assumed"]}
        self.left_out = {note["what"]: note["why"] for note in found["left_out"]}
        self.no_matter = found["no_matter"]
