"""The module of Python: the answers of the command line, and errors that say what to write."""
import json
import math
import os
import pathlib
import subprocess

import pytest

import stratagem
from stratagem.answers import FIGURES

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
    wide = changed(model={"family": "gpt", "layers": 12, "hidden": 4096, "heads": 32,
                          "sequence": 128, "vocabulary": 1024})
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
    picture = stratagem.simulate(SMALL).picture()
    picture.save(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "one" in page
    assert picture._repr_html_().startswith("<iframe srcdoc=")


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
    scenario = {"question": "?", "defaults": {k: v for k, v in SMALL["runs"][0].items()
                                              if k not in ("name", "strategy")},
                "search": {"tensor": [1, 2], "pipeline": [1], "schedule": ["1f1b"], "zero": [0],
                           "recompute": ["none"], "micro_batch": [1, 4]}}
    found = stratagem.search(scenario, best=2, store=tmp_path / "store.sqlite")
    assert len(found.best) == len(found.records()) == 2
    times = [run.iteration_time for run in stratagem.simulate(found.plans).runs.values()]
    assert times == sorted(times) == [plan["iteration_time_s"] for plan in found.best]
    assert stratagem.search(scenario, best=2, store=tmp_path / "store.sqlite").text == found.text
    with pytest.raises(stratagem.Error, match="time, cost or memory"):
        stratagem.search(scenario, least="speed")


def test_other_programs_files_become_scenarios():
    folder = ROOT / "tests/imports/data"
    imported = stratagem.import_files(folder / "llama_3_70b.json", folder / "deepspeed_infinity.json",
                                      set={"gpus": 64, "sequence": 4096})
    assert imported.scenario["runs"][0]["model"]["layers"] == 80
    assert imported.left_out and "preset \"dgx-h100\"" in imported.assumed


def test_names_and_the_library(tmp_path):
    assert "h100-sxm5" in stratagem.names("profiles")
    assert "1f1b" in stratagem.names("schedules")
    with pytest.raises(stratagem.Error, match="a folder"):
        stratagem.use_library(tmp_path / "nowhere")
    assert stratagem.version().count(".") == 2
