"""What scripts/gpu-check does around its steps: programs that pretend stand in for those that need a GPU.

    gpu_check_test.py     from the root of the repository
"""

import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
import unittest

STEPS = ["build", "kernels", "loop", "framework", "collectives", "attention", "fit", "execute", "reference",
         "sanitize"]
PROGRAMS = ["stratagem", "kernels_gpu_test", "ranks_gpu_test", "execute_test", "gpu_bench"]
# Tells what it was asked for, and fails if a file of its name says so. What it writes exists afterwards.
PRETENDS = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
while [ $# -gt 0 ]; do
  case $1 in -o | --json | --trace) mkdir -p "$(dirname "$2")"; echo '{}' > "$2" ;; esac
  shift
done
[ ! -e "$FAILS/$(basename "$0")" ] || exit 1
"""
NO_TORCH = "#!/bin/sh\nexit 1\n"


class Checked(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("scripts", "scenarios/loop", "build", "tools", "fails"):
            os.makedirs(self.path(name))
        shutil.copy("scripts/gpu-check", self.path("scripts/gpu-check"))
        for name in ("gpu.json", "gpu_large.json"):
            shutil.copy("scenarios/loop/" + name, self.path("scenarios/loop/" + name))
        self.gpu("NVIDIA H100 80GB HBM3", "9.0")
        self.write("tools/compute-sanitizer", PRETENDS)
        for python in ("python3", "python"):
            self.write("tools/" + python, NO_TORCH)
        for program in PROGRAMS:
            self.write("packed/" + program, PRETENDS)
        os.makedirs(self.path("packed/lib"))
        with tarfile.open(self.path("build/gpu-check.tar.gz"), "w:gz") as packed:
            packed.add(self.path("packed"), ".")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)
        os.chmod(self.path(name), stat.S_IRWXU)

    def gpu(self, name, capability):
        self.write("tools/nvidia-smi", f"""#!/bin/sh
case $* in
  *query-gpu=name*) echo '{name}' ;;
  *query-gpu=compute_cap*) echo '{capability}' ;;
esac
""")

    def check(self, *arguments, **environment):
        """Exit code and output; what programs were asked for is in self.calls."""
        settings = {
            "PATH": self.path("tools") + ":/usr/bin:/bin",
            "CALLS": self.path("calls"),
            "FAILS": self.path("fails"),
            **environment,
        }
        open(self.path("calls"), "w").close()
        ran = subprocess.run(
            [self.path("scripts/gpu-check"), *arguments], env=settings, capture_output=True, text=True
        )
        with open(self.path("calls")) as calls:
            self.calls = calls.read()
        return ran.returncode, ran.stdout + ran.stderr

    def fail(self, program):
        self.write("fails/" + program, "")

    def archived(self, where="out"):
        with tarfile.open(self.path(where + "/gpu-check-results.tar.gz")) as archive:
            return {
                member.name[2:]: archive.extractfile(member).read().decode()
                for member in archive
                if member.isfile()
            }

    def test_without_arguments_it_says_what_it_knows(self):
        code, text = self.check()
        self.assertEqual(code, 2)
        self.assertIn("scripts/gpu-check run [STEP...]", text)

    def test_steps_are_listed_in_order_with_their_seconds(self):
        code, text = self.check("steps")
        self.assertEqual(code, 0)
        self.assertEqual([line.split()[0] for line in text.splitlines()], STEPS + ["all"])
        self.assertEqual(
            sum(int(line.split()[2]) for line in text.splitlines()[:-1]), int(text.splitlines()[-1].split()[2])
        )

    def test_an_unknown_step_is_refused_before_anything_runs(self):
        code, text = self.check("run", "kernels", "nonsense")
        self.assertEqual((code, self.calls), (2, ""))
        self.assertIn('no step "nonsense"; there are: ' + " ".join(STEPS), text)

    def test_without_what_pack_makes_nothing_runs(self):
        os.remove(self.path("build/gpu-check.tar.gz"))
        code, text = self.check("run")
        self.assertEqual(code, 2)
        self.assertIn("no build/gpu-check.tar.gz", text)

    def test_all_steps_run_in_order_and_one_file_has_their_results(self):
        code, text = self.check("run")
        self.assertEqual(code, 0, text)
        places = [text.index(f"== {step}: about") for step in STEPS]
        self.assertEqual(places, sorted(places))
        results = {step: self.archived()[f"results/{step}"].strip() for step in STEPS}
        for step in ("framework", "reference"):  # without PyTorch
            self.assertEqual(results.pop(step), "nothing to do here")
        self.assertEqual(set(results.values()), {"passed"})
        self.assertIn("kernels.log", self.archived())
        # The quick sweep of the loop and the whole one, each fitted with the datasheet of this GPU.
        for said in ("measure --backend cuda --quick --datasheet scenarios/datasheets/h100-sxm5.json",
                     "measure --backend cuda --datasheet scenarios/datasheets/h100-sxm5.json"):
            self.assertEqual(self.calls.count(said), 1)
        self.assertEqual(self.calls.count("calibrate fit "), 2)

    def test_a_gpu_is_fitted_with_the_datasheet_of_its_chip_and_board(self):
        for name, capability, sheet in (
            ("NVIDIA GH200 480GB", "9.0", "gh200-96gb"),
            ("NVIDIA H200", "9.0", "h200-sxm5"),
            ("NVIDIA H100 80GB HBM3", "9.0", "h100-sxm5"),
            ("NVIDIA B200", "10.0", "b200-sxm"),
            ("NVIDIA A100-SXM4-80GB", "8.0", "a100-sxm4-80gb"),
            ("NVIDIA A100-SXM4-40GB", "8.0", "a100-sxm4-40gb"),
            ("NVIDIA A100 80GB PCIe", "8.0", "a100-pcie-80gb"),
            ("NVIDIA A100-PCIE-40GB", "8.0", "a100-pcie-40gb"),
            ("Tesla V100-SXM3-32GB-H", "7.0", "v100-sxm3-450w"),
            ("Tesla V100-SXM3-32GB", "7.0", "v100-sxm3"),
            ("Tesla V100-SXM2-32GB", "7.0", "v100-sxm2-32gb"),
            ("Tesla V100-SXM2-16GB", "7.0", "v100-sxm2"),
        ):
            self.assertTrue(os.path.exists(f"scenarios/datasheets/{sheet}.json"))
            self.gpu(name, capability)
            shutil.rmtree(self.path("out"), ignore_errors=True)
            self.assertEqual(self.check("run", "fit")[0], 0, name)
            self.assertIn(f"--datasheet scenarios/datasheets/{sheet}.json", self.calls, name)

    def test_a_gpu_on_another_board_has_no_datasheet_until_one_is_named(self):
        for name in ("NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200 NVL", "NVIDIA GH200 144G HBM3e",
                     "NVIDIA GB200", "Tesla V100-PCIE-16GB"):
            self.gpu(name, "9.0")
            shutil.rmtree(self.path("out"), ignore_errors=True)
            code, text = self.check("run", "fit")
            self.assertEqual((code, self.calls), (1, ""), name)
            self.assertIn("no datasheet is named like this GPU", text)
            self.assertEqual(self.check("run", "fit", DATASHEET="mine.json")[0], 0, name)
            self.assertIn("--datasheet mine.json", self.calls)

    def test_a_gpu_without_bf16_computes_in_what_it_has(self):
        for name, capability, best in (("Tesla V100-SXM2-16GB", "7.0", "fp16"), ("NVIDIA H200", "9.0", "bf16"),
                                       ("NVIDIA B200", "10.0", "bf16")):
            self.gpu(name, capability)
            shutil.rmtree(self.path("out"), ignore_errors=True)
            self.assertEqual(self.check("run", "loop", "execute")[0], 0)
            told = set(re.findall(r"--precision (\w+)", self.calls))
            self.assertEqual(told, {"fp32", "fp16", best})
            self.assertEqual(self.calls.count(f"--precision {best} --steps 20 --unchecked"), 6)
            with open(self.path("out/gpu/loop/scenario.json")) as scenario:
                self.assertIn(f'"precision": "{best}"', scenario.read())

    def test_named_steps_alone_run(self):
        code, _ = self.check("run", "collectives", "attention")
        self.assertEqual(code, 0)
        self.assertEqual(
            self.calls,
            "ranks_gpu_test \nkernels_gpu_test -# [#attention_test] --durations yes\ngpu_bench \n",
        )

    def test_a_step_that_fails_keeps_no_other_from_running_and_is_repeated_alone(self):
        self.fail("ranks_gpu_test")
        code, text = self.check("run", "kernels", "collectives", "attention")
        self.assertEqual(code, 1)
        self.assertIn("gpu-check: failed: collectives", text)
        self.assertEqual(self.archived()["results/collectives"], "failed (1)\n")
        self.assertEqual(self.archived()["results/attention"], "passed\n")
        os.remove(self.path("fails/ranks_gpu_test"))
        code, text = self.check("run", "kernels", "collectives", "attention")
        self.assertEqual((code, self.calls), (0, "ranks_gpu_test \n"))
        self.assertIn("== kernels: passed before", text)

    def test_a_test_that_finds_no_gpu_has_failed(self):
        self.write("packed/ranks_gpu_test", "#!/bin/sh\necho no CUDA device: skipped\n")
        with tarfile.open(self.path("build/gpu-check.tar.gz"), "w:gz") as packed:
            packed.add(self.path("packed"), ".")
        self.assertEqual(self.check("run", "collectives")[0], 1)

    def test_another_machine_goes_on_with_the_results_that_were_brought_back(self):
        self.assertEqual(self.check("run", "kernels", OUT=self.path("brought"))[0], 0)
        self.assertIn("results/kernels", self.archived("brought"))
        shutil.rmtree(self.path("out"))
        os.makedirs(self.path("out"))
        shutil.copy(self.path("brought/gpu-check-results.tar.gz"), self.path("out"))
        code, text = self.check("run", "kernels", "collectives")
        self.assertEqual((code, self.calls), (0, "ranks_gpu_test \n"))
        self.assertIn("== kernels: passed before", text)

    def test_traces_stay_behind_where_all_is_too_large_to_be_brought_back(self):
        os.makedirs(self.path("out/gpu"))
        with open(self.path("out/gpu/a.trace.json"), "wb") as trace:
            trace.write(os.urandom(17 << 20))
        self.assertEqual(self.check("run", "collectives")[0], 0)
        archived = self.archived()
        self.assertIn("collectives.log", archived)
        self.assertNotIn("a.trace.json", archived)

    def test_what_does_not_end_in_time_is_cut_off_and_what_is_left_is_said(self):
        self.write("packed/kernels_gpu_test", "#!/bin/sh\nexec sleep 60\n")
        with tarfile.open(self.path("build/gpu-check.tar.gz"), "w:gz") as packed:
            packed.add(self.path("packed"), ".")
        code, text = self.check("run", "kernels", "collectives", LIMIT="7")
        self.assertEqual(code, 1)
        self.assertIn("== kernels: cut off", text)
        self.assertIn("no time left for collectives: call it again", text)
        self.assertEqual(self.calls, "")
        self.assertEqual(self.archived()["results/kernels"], "cut off\n")
        self.assertNotIn("results/collectives", self.archived())


if __name__ == "__main__":
    unittest.main()
