"""What scripts/torch_reference.py reads, counts and writes; training needs a GPU and is not tested.

    torch_reference_test.py PROGRAM     from the root of the repository; PROGRAM is stratagem
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
SCENARIO = "scenarios/reference/gpt-one-gpu.json"


def load():
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("reference", "scripts/torch_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = load()


def run(**settings):
    """A run that can be trained, with other settings."""
    defaults = {
        "name": "a",
        "model": {"family": "gpt", "layers": 2, "hidden": 8, "heads": 2, "sequence": 4, "vocabulary": 10},
        "cluster": {"preset": "dgx-h200", "gpus": 1},
        "training": {"global_batch": 8, "micro_batch": 2, "precision": "bf16", "optimizer": "adam"},
    }
    return reference.layered(settings, defaults)


class Reading(unittest.TestCase):
    def test_what_a_run_lacks_comes_from_the_defaults_key_by_key(self):
        own, defaults = {"a": {"b": 1}}, {"a": {"b": 2, "c": 3}, "d": 4}
        self.assertEqual(reference.layered(own, defaults), {"a": {"b": 1, "c": 3}, "d": 4})

    def test_what_would_be_another_training_is_refused(self):
        for settings, because in (
            ({"cluster": {"gpus": 2}}, "one GPU"),
            ({"strategy": {"tensor": 2}}, "tensor 2"),
            ({"strategy": {"coshard": 2}}, "coshard"),
            ({"strategy": {"recompute": "selective"}}, "recompute"),
            ({"model": {"family": "llama"}}, "family"),
            ({"model": {"experts": 4}}, "experts"),
            ({"training": {"precision": "fp16-fp32-gradients"}}, "precision"),
            ({"training": {"optimizer": "sgd"}}, "optimizer"),
            ({"training": {"precision": "fp32"}, "model": {"attention": "fused"}}, "fused"),
            ({"plan": "p.json"}, "plan"),
        ):
            with self.assertRaisesRegex(reference.Refused, because):
                reference.config_of(run(**settings))

    def test_micro_batches_divide_the_batch(self):
        self.assertEqual(reference.config_of(run())["micro_batches"], 4)


class Counting(unittest.TestCase):
    def test_numbers_of_parameters_are_those_published_of_gpt_2(self):
        # transformers' models gpt2, gpt2-medium, gpt2-large and gpt2-xl.
        published = {"124M": 124439808, "355M": 354823168, "774M": 774030080, "1.6B": 1557611200}
        _, runs = reference.read_scenario(SCENARIO)
        of_gpt_2 = [one for one in runs if one["name"].split()[0].strip(",") in published]
        self.assertEqual(len(of_gpt_2), len(runs) - 3)  # the others are wider, and nobody's
        for one in of_gpt_2:
            config = reference.config_of(one)
            self.assertEqual(reference.parameters_of(config), published[one["name"].split()[0]])

    def test_the_program_counts_the_same(self):
        counted = reference.parameters_by_program(PROGRAM, SCENARIO)
        _, runs = reference.read_scenario(SCENARIO)
        self.assertEqual(len(counted), len(runs))
        self.assertTrue(reference.plan(runs, counted))
        counted[runs[0]["name"]] += 1
        self.assertFalse(reference.plan(runs, counted))

    def test_of_other_shapes_too(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, model in enumerate(({}, {"tied": False}, {"intermediate": 20, "activation": "relu"})):
                scenario = {"question": "?", "runs": [run(model=model)]}
                scenario["runs"][0]["profile"] = os.path.abspath("scenarios/profiles/h200-sxm5.json")
                scenario["runs"][0]["stack"] = os.path.abspath("scenarios/stacks/plain.json")
                file = os.path.join(folder, f"{number}.json")
                reference.write(scenario, file)
                counted = reference.parameters_by_program(PROGRAM, file)
                self.assertTrue(reference.plan(scenario["runs"], counted))


class Writing(unittest.TestCase):
    def test_what_is_written_is_validated_by_the_program(self):
        scenario, _ = reference.read_scenario(SCENARIO)
        result = {"fits": True, "times": [0.3, 0.1, 0.2], "allocated": 10**10, "reserved": 11 * 10**9}
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "deep", "written.json")
            os.mkdir(os.path.dirname(file))
            written = reference.moved(scenario, SCENARIO, file)
            written["runs"] = written["runs"][:2]
            written["runs"][0]["measured"] = reference.measured_of(result, "a test")
            written["runs"][1]["measured"] = reference.measured_of({"fits": False}, "a test")
            reference.write(written, file)
            report = os.path.join(folder, "report.json")
            subprocess.run(
                [PROGRAM, "validate", file, "--json", report], check=True, stdout=subprocess.DEVNULL
            )
            with open(report, encoding="utf-8") as stream:
                text = json.dumps(json.load(stream))
        for figure in ("iteration_time", "peak_allocated", "peak_reserved"):
            self.assertIn(figure, text)

    def test_the_middle_time_counts(self):
        result = {"fits": True, "times": [0.3, 0.1, 0.2], "allocated": 1, "reserved": 2}
        measured = reference.measured_of(result, "a test")
        self.assertEqual(measured["iteration_time"]["value"], "200.0000 ms")
        self.assertEqual(reference.median([4, 1, 2, 3]), 2.5)

    def test_gpus_are_told_apart_by_their_chips(self):
        for name, chip in (
            ("NVIDIA H200", "H200"),
            ("NVIDIA H200 SXM5 141 GB", "H200"),
            ("NVIDIA A100-SXM4-80GB", "A100"),
            ("Tesla V100-SXM3-32GB", "V100"),
            ("NVIDIA GH200 480GB", "GH200"),
        ):
            self.assertEqual(reference.chip_of(name), chip)


if __name__ == "__main__":
    unittest.main()
