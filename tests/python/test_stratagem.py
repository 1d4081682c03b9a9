"""The module of Python: the answers of the command line, and errors that say what to write."""
import copy
import html
import inspect
import json
import math
import os
import pathlib
import pickle
import subprocess

import pytest

import stratagem
from stratagem.answers import FIGURES
from stratagem.arguments import EXPECTED

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ["STRATAGEM_EXECUTABLE"]

SMALL = {
    "question": "?",
    "runs": [
        {"name": "one", "model": {"family": "gpt", "layers": 4, "hidden": 256, "heads": 4,
                                  "sequence": 128, "vocabulary": 1024},
         "cluster": {"preset": "dgx-2h", "gpus": 2}, "profile": "v100-sxm3-450w",
         "stack": "megatron-2019",
         "training": {"global_batch": 8, "micro_batch": 4, "precision": "fp16",
                      "optimizer": "adam"},
         "strategy": {"data": 2}}]}
WIDE = {"family": "gpt", "layers": 12, "hidden": 4096, "heads": 32, "sequence": 128,
        "vocabulary": 1024}
SPACE = {"question": "?",
         "defaults": {key: value for key, value in SMALL["runs"][0].items()
                      if key not in ("name", "strategy")},
         "search": {"tensor": [1, 2], "pipeline": [1], "schedule": ["1f1b"], "zero": [0],
                    "recompute": ["none"], "micro_batch": [1, 4]}}


class Index:
    """A whole number of another library."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def changed(**settings):
    scenario = json.loads(json.dumps(SMALL))
    scenario["runs"][0].update(settings)
    return scenario


def test_answers_are_those_of_the_command_line(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps(SMALL))
    subprocess.run([PROGRAM, "simulate", "a.json", "--json", "out.json", "--set", "micro_batch=2"],
                   cwd=tmp_path, check=True, capture_output=True)
    expected = json.loads((tmp_path / "out.json").read_text())
    report = stratagem.simulate(file, set={"micro_batch": 2})
    assert report.json["runs"] == expected["runs"]
    assert stratagem.simulate(SMALL, set={"micro_batch": 2}).json["runs"] == expected["runs"]


def test_figures_are_attributes_without_their_units():
    run = stratagem.simulate(SMALL).runs["one"]
    assert run.status == "ok" and run.gpus == 2
    assert run.iteration_time == run["iteration_time_s"] > 0
    assert run.peak_used == run["peak_used_bytes"]
    assert math.isclose(run.samples_per_s, 8 / run.iteration_time)
    compared = stratagem.simulate({**SMALL, "baseline": "one"}).runs["one"]
    assert all(getattr(compared, name) is not None for name in FIGURES)
    with pytest.raises(AttributeError, match="iteration_time_s"):
        run.speed


def test_grids_records_and_tables():
    report = stratagem.simulate(SMALL, grid={"micro_batch": [1, 2, 4]})
    assert len(report.runs) == 3
    rows = report.records()
    assert [row["resolved.training.micro_batch"] for row in rows] == [1, 2, 4]
    assert all(not isinstance(value, (dict, list)) for row in rows for value in row.values())
    assert report._repr_html_().count("<tr>") == 4
    assert stratagem.simulate(SMALL, grid=["micro_batch=1,2"], run="one, micro_batch 2").runs
    assert len(stratagem.simulate(SMALL, grid={"precision": "fp16", "micro_batch": 2}).runs) == 1
    assert stratagem.simulate(SMALL, set="micro_batch=2").records()[0][
        "resolved.training.micro_batch"] == 2


def test_what_is_asked_for_is_answered():
    wide = changed(model=WIDE)
    assert stratagem.simulate(wide, remedies=True, jobs=1).runs["one"]["remedies"]
    assert "remedies" not in stratagem.simulate(wide).runs["one"]
    assert "iteration_time_with_twice_s" in stratagem.simulate(SMALL, why=True).runs["one"]
    plain = stratagem.simulate(SMALL).json
    assert stratagem.simulate(SMALL, exact=True, unfolded=True).json["runs"] == plain["runs"]


def test_frames_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = stratagem.simulate(SMALL, grid={"micro_batch": [1, 2]}).to_frame()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 2


def test_pictures_are_pages_that_need_no_other(tmp_path):
    for answer, part in [(stratagem.simulate(SMALL), "one"),
                         (stratagem.search(SPACE), '"objective":"time"')]:
        picture = answer.picture()
        picture.save(tmp_path / "a.html")
        page = (tmp_path / "a.html").read_text()
        assert page.startswith("<!DOCTYPE html>") and part in page
        assert picture._repr_html_().startswith("<iframe srcdoc=")


def test_pages_and_csv_are_those_of_the_command_line(tmp_path):
    def run(*words):
        subprocess.run([PROGRAM, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "a.json").write_text(json.dumps(SMALL))
    run("simulate", "a.json", "--csv", "out.csv", "--grid", "micro_batch=1,2")
    report = stratagem.simulate(tmp_path / "a.json", grid={"micro_batch": [1, 2]})
    assert report.to_csv() == (tmp_path / "out.csv").read_text()
    assert report.to_csv(tmp_path / "mine.csv") is None
    assert (tmp_path / "mine.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    (tmp_path / "space.json").write_text(json.dumps(SPACE))
    run("search", "space.json", "--for", "memory", "--report", "page.html")
    found = stratagem.search(tmp_path / "space.json", least="memory")
    expected = (tmp_path / "page.html").read_text()
    assert found.picture().page.replace(f"{tmp_path}/", "") == expected


def test_a_time_is_not_shown_of_a_run_that_does_not_fit():
    scenario = changed(model=WIDE)
    scenario["runs"].append({**SMALL["runs"][0], "name": "three", "strategy": {"tensor": 3}})
    scenario["runs"].append({**SMALL["runs"][0], "name": "small"})
    report = stratagem.simulate(scenario)
    large, refused, small = report.runs.values()
    assert large.iteration_time > 0 and not large.fits
    assert repr(large) == "<Run 'one': does not fit>"
    assert repr(refused) == "<Run 'three': refused>"
    assert repr(small).startswith("<Run 'small': fits, ")
    first, second, third = report._repr_html_().split("<tr>")[2:]
    assert "<td>does not fit</td>" in first and html.escape(large["reason"]) in first
    assert f"{large.iteration_time:.4g}" not in first and f"{large.mfu:.4g}" not in first
    assert html.escape(refused["reason"]) in second
    assert "<td>fits</td>" in third and f"{small.iteration_time:.4g}" in third
    tight = stratagem.answers.Run({**small, "tight": True})
    assert stratagem.answers.row_of(tight)["verdict"] == "fits, tight"


def test_answers_can_be_copied_and_pickled(tmp_path):
    report = stratagem.simulate(SMALL, grid={"micro_batch": [1, 2]})
    answers = [report, report.runs["one, micro_batch 1"], stratagem.search(SPACE),
               stratagem.import_files(ROOT / "tests/imports/data/llama_3_70b.json")]
    for answer in answers:
        for other in (copy.copy(answer), copy.deepcopy(answer),
                      pickle.loads(pickle.dumps(answer))):
            assert other is not answer and type(other) is type(answer) and other == answer
    assert report != stratagem.simulate(SMALL)
    assert pickle.loads(pickle.dumps(report)).picture() == report.picture()
    with pytest.raises(stratagem.Error) as raised:
        stratagem.simulate(changed(bogus=1))
    error = pickle.loads(pickle.dumps(raised.value))
    assert (str(error), vars(error)) == (str(raised.value), vars(raised.value))


def test_arguments_of_another_type_say_what_was_expected():
    for function in (stratagem.simulate, stratagem.search, stratagem.validate,
                     stratagem.import_files, stratagem.names, stratagem.use_library):
        assert set(inspect.signature(function).parameters) <= set(EXPECTED)
    values = {stratagem.simulate: {"jobs": "2", "remedies": "yes", "why": 1, "exact": None,
                                   "unfolded": "", "set": 5, "grid": 7, "run": 3, "folder": 6,
                                   "progress": 3},
              stratagem.search: {"best": "x", "least": 3, "store": 4, "jobs": True, "why": "no"}}
    for function, wrong in values.items():
        for name, value in wrong.items():
            with pytest.raises(stratagem.Error) as raised:
                function(SPACE, **{name: value})
            assert str(raised.value) == (f"/{name}: expected {EXPECTED[name][0]}, "
                                         f"found {value!r}")
            assert raised.value.path == "/" + name and raised.value.found == repr(value)
    for call, line in [
            (lambda: stratagem.simulate(5), "/scenario: expected a dict or the path"),
            (lambda: stratagem.simulate(SMALL, jobs=2**40), "2\\*\\*31, found 1099511627776"),
            (lambda: stratagem.simulate(SMALL, set=["tensor=1", 3]), "/set: .*found .*3]"),
            (lambda: stratagem.import_files(["a", 3]), "/files: expected paths"),
            (lambda: stratagem.simulate(SMALL, micro_batch=2),
             r"/micro_batch: expected .* or set=\{.micro_batch.: 2\}, found 2"),
            (lambda: stratagem.validate("a", figure="speed"), "/figure: expected one of"),
            (lambda: stratagem.import_files("a", set=5), "/set: expected"),
            (lambda: stratagem.names(1), "/what: expected"),
            (lambda: stratagem.use_library(1), "/folder: expected a path, found 1")]:
        with pytest.raises(stratagem.Error, match=line):
            call()


def test_values_of_a_scenario_are_those_of_json():
    for value, found in [({1}, "{1}"), (math.nan, "nan"), (object, "<class 'object'>"),
                         ({1: 2}, "1")]:
        with pytest.raises(stratagem.Error) as raised:
            stratagem.simulate(changed(training={"global_batch": [1, value]}))
        assert raised.value.path == "/runs/0/training/global_batch/1"
        assert raised.value.found == found and raised.value.found in str(raised.value)
    with pytest.raises(stratagem.Error, match=r"/set/tensor: .*found \{1\}"):
        stratagem.simulate(SMALL, set={"tensor": {1}})
    report = stratagem.simulate(SMALL, grid={"micro_batch": [Index(1), Index(2)]}, jobs=Index(1))
    assert report == stratagem.simulate(SMALL, grid={"micro_batch": range(1, 3)}, jobs=1)


def test_mistakes_say_where_and_what_to_write(tmp_path):
    with pytest.raises(stratagem.Error) as raised:
        stratagem.simulate(changed(stack="megatron-2091"))
    assert raised.value.path == "/runs/0/stack"
    assert "megatron-2019" in str(raised.value)
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(changed(bogus=1)))
    with pytest.raises(stratagem.Error, match="mine.json: /runs/0/bogus"):
        stratagem.simulate(file)
    with pytest.raises(stratagem.Error, match="the name of a run"):
        stratagem.simulate(SMALL, run="two")
    with pytest.raises(stratagem.Error, match="expected a file"):
        stratagem.simulate("nowhere.json")
    with pytest.raises(stratagem.Error, match="profiles, stacks"):
        stratagem.names("wheels")
    refused = stratagem.simulate(changed(strategy={"tensor": 3})).runs["one"]
    assert refused.status == "refused" and refused.iteration_time is None


def test_searches_find_plans_that_are_answered_alike(tmp_path):
    found = stratagem.search(SPACE, best=2, store=tmp_path / "store.sqlite")
    assert len(found.best) == len(found.records()) == 2
    times = [run.iteration_time for run in stratagem.simulate(found.plans).runs.values()]
    assert times == sorted(times) == [plan["iteration_time_s"] for plan in found.best]
    assert stratagem.search(SPACE, best=2, store=tmp_path / "store.sqlite").text == found.text
    alike = stratagem.search(SPACE, best=2, set={"model.layers": 2})
    assert alike.best[0]["iteration_time_s"] != found.best[0]["iteration_time_s"]
    with pytest.raises(stratagem.Error, match="time, cost or memory"):
        stratagem.search(SPACE, least="speed")


def test_calls_tell_how_far_they_are(capsys):
    steps = []
    report = stratagem.simulate(SMALL, grid={"micro_batch": [1, 2, 4]},
                                progress=lambda *one: steps.append(one))
    assert ("runs", 3, 3) in steps and len(steps) == 4  # 0 to 3 runs are done
    assert report == stratagem.simulate(SMALL, grid={"micro_batch": [1, 2, 4]}, progress=True)
    assert "3 of 3 runs" in capsys.readouterr().err
    stratagem.search(SPACE, progress=lambda *one: steps.append(one))
    assert steps[-1][0] == "plans simulated at most" and steps[-1][1] == steps[-1][2] > 0

    def interrupt(*_):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        stratagem.simulate(SMALL, progress=interrupt)


def test_predictions_stand_beside_measurements(tmp_path):
    time = stratagem.simulate(SMALL).runs["one"].iteration_time
    source = {"measured": {"iteration_time": {"value": f"{2 * time} s", "provenance": "published",
                                                 "source": "a test"}}}
    file = tmp_path / "measured.json"
    file.write_text(json.dumps(changed(**source)))
    found = stratagem.validate(tmp_path, figure="iteration_time")
    assert [row["error"] for row in found.records()] == pytest.approx([-0.5])
    assert found.statistics[0]["group"] == "measured" and found.statistics[0]["count"] == 1
    subprocess.run([PROGRAM, "validate", "measured.json", "--figure", "iteration_time", "--json",
                    "out.json"], cwd=tmp_path, check=True, capture_output=True)
    assert json.loads((tmp_path / "out.json").read_text())["groups"][0]["statistics"] == \
        found.json["groups"][0]["statistics"]
    assert "<html" in found.picture().page and "<table>" in found._repr_html_()


def test_other_programs_files_become_scenarios():
    folder = ROOT / "tests/imports/data"
    imported = stratagem.import_files(folder / "llama_3_70b.json",
                                      folder / "deepspeed_infinity.json",
                                      set={"gpus": 64, "sequence": 4096})
    assert imported.scenario["runs"][0]["model"]["layers"] == 80
    assert imported.left_out and "preset \"dgx-h100\"" in imported.assumed


def test_names_and_the_library(tmp_path):
    assert "h100-sxm5" in stratagem.names("profiles")
    assert "1f1b" in stratagem.names("schedules")
    with pytest.raises(stratagem.Error, match="a folder"):
        stratagem.use_library(tmp_path / "nowhere")
    assert stratagem.version().count(".") == 2
