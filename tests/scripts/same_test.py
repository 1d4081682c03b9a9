"""What scripts/same looks at and what it finds to differ.

    same_test.py PROGRAM     from the root of the repository; PROGRAM is stratagem
"""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


def load():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("same", "scripts/same")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("same", loader))
    loader.exec_module(module)
    return module


same = load()


def run(layers, micro_batches, **strategy):
    """One sample a micro-batch and rank."""
    batch = micro_batches * strategy.get("data", 1)
    return {
        "model": {"layers": layers},
        "training": {"global_batch": batch, "micro_batch": 1},
        "strategy": strategy,
    }


class SmallCopies(unittest.TestCase):
    def test_runs_of_few_calls_stay_as_they_are(self):
        self.assertIsNone(same.fewer_micro_batches(run(20, 100), {}))
        self.assertIsNone(same.fewer_micro_batches(run(96, 16, pipeline=8), {}))

    def test_others_have_as_many_micro_batches_as_come_to_the_limit(self):
        # 2000 calls of 10 layers: 200 micro-batches, of 3 samples on 3 ranks.
        self.assertEqual(same.fewer_micro_batches(run(10, 201, data=3), {}), 600)

    def test_two_micro_batches_for_every_stage_remain(self):
        self.assertEqual(same.fewer_micro_batches(run(64, 2048, pipeline=64), {}), 128)

    def test_schedules_find_whole_rounds_of_stages(self):
        self.assertEqual(same.fewer_micro_batches(run(32, 512, pipeline=8), {}) % 8, 0)

    def test_what_a_run_does_not_say_the_defaults_do(self):
        full = run(10, 300)
        part = {"training": full.pop("training")}
        self.assertEqual(same.fewer_micro_batches(part, full), 200)


class Differences(unittest.TestCase):
    def test_names_are_replaced_as_whole_words_only(self):
        with tempfile.NamedTemporaryFile("w", suffix=".map") as file:
            file.write("F forward\nout.grad out.gradient\n")
            file.flush()
            rename = same.renaming(file.name)
        self.assertEqual(rename("F of F, Far: out.grad mlp.out.grad"), "forward of forward, Far: out.gradient mlp.out.grad")

    def test_the_first_line_that_differs_is_told(self):
        old = "".join(f"{i}\n" for i in range(1000))
        where, lines = same.difference(old, old.replace("\n700\n", "\nother\n"))
        self.assertEqual(where, "line 701 of 1000, now of 1000")
        self.assertIn("-700", lines)
        self.assertIn("+other", lines)


SCENARIO = "scenarios/own_plan.json"


def called(*arguments):
    """Exit code and output."""
    ran = subprocess.run(
        ["scripts/same", *arguments, "--only", SCENARIO], capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout + ran.stderr


class Comparing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def changing(self, command):
        """The program, after which `command` changes what it wrote; "$out" is the last word of its line."""
        file = self.folder / "changing"
        file.write_text(f'#!/bin/bash\n{os.path.abspath(PROGRAM)} "$@"; code=$?\n'
                        f'for out in "$@"; do :; done; [[ $out == --expanded ]] && out="${{@: -2:1}}"\n{command}\nexit $code\n')
        file.chmod(stat.S_IRWXU)
        return str(file)

    def test_a_program_is_the_same_as_itself_and_not_as_one_that_answers_otherwise(self):
        record = str(self.folder / "record")
        code, text = called("record", record, "--program", PROGRAM)
        self.assertEqual(code, 0, text)
        self.assertEqual(called(record, "--program", PROGRAM)[0], 0)

        slower = self.changing(r"""[[ -f $out ]] && sed -i 's/"iteration_time_s": /&1/' "$out" """)
        code, text = called(record, "--program", slower)
        self.assertEqual(code, 1, text)
        names = [one["name"] for one in json.loads(pathlib.Path(SCENARIO).read_text())["runs"]]
        for name in names:
            self.assertIn(f"{SCENARIO}: {name}: results differs", text)
        self.assertIn("iteration_time_s", text)
        self.assertNotIn("program differs", text)

        other = self.changing("""[[ -d $out ]] && sed -i 's/^lag /delay /' "$out"/*.txt""")
        code, text = called(record, "--program", other)
        self.assertEqual(code, 1, text)
        self.assertIn("program differs, line 1 of ", text)
        renamed = self.folder / "map"
        renamed.write_text("lag delay\n")
        code, text = called(record, "--program", other, "--map", str(renamed))
        self.assertEqual(code, 0, text)

    def test_a_folder_without_a_record_is_refused(self):
        self.assertEqual(called(str(self.folder))[0], 2)


if __name__ == "__main__":
    unittest.main()
