"""Folders of the audit (docs/audit): small models of their default configurations have no findings.

SEXTANT_DOCTOR_FOLDERS limits the test to some model types, separated by spaces.
"""

import os
import sys
import unittest

import tiny_models
import transformers

from sextant.doctor import doctor, subject

sys.path.insert(0, str(tiny_models.package.ROOT / "tests/audit"))
from audit.shrink import shrunk  # noqa: E402 pylint: disable=wrong-import-position

# Model types of transformers' folders that the audit found in agreement with explain.
TYPES = """
afmoe apertus arcee aria_text bitnet cohere cohere2 cwm deepseek_v3 diffllama doge dots1 ernie4_5
ernie4_5_moe exaone4 flex_olmo gemma gemma2 gemma3_text glm glm4 glm4_moe gpt_neox gpt_oss granite
granitemoe granitemoeshared helium hunyuan_v1_dense hunyuan_v1_moe jetmoe llama llama4_text
longcat_flash minimax ministral mistral mixtral moonshine nanochat nemotron olmo olmo2 olmo3 olmoe
persimmon phi phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_moe qwen3_next seed_oss smollm3 solar_open
stablelm starcoder2 vaultgemma youtu
""".split()
# Findings that are true, and their fields: explain reads configurations as transformers 5.24, which
# gives layers with a window of olmo3 the base 500000, where 4.57 gives them rope_theta. In 4.57,
# sdpa drops softcaps, and doge's mask if it is None, as in a run that fills a cache; linear layers
# of qwen3_next go on by one token only.
OTHER_IN_4 = {"olmo3": "frequencies", "gemma2": "softcap", "vaultgemma": "softcap", "doge": "cache",
              "qwen3_next": "cache"}
DEPTH = 6
LEAST = 40  # folders that must be judged


class Folders(unittest.TestCase):
    """Default configurations as transformers builds them."""

    def test_no_findings(self):
        wanted = os.environ.get("SEXTANT_DOCTOR_FOLDERS", "").split() or TYPES
        sound, others = [], []
        for kind in wanted:
            try:
                config = shrunk(transformers.AutoConfig.for_model(kind), depth=DEPTH)
                model = subject.build(config, trust_remote_code=False)
            except Exception as error:  # pylint: disable=broad-except
                others.append(f"{kind}: {str(error)[:200]}")  # not in this version, for example
                continue
            report = doctor(model)
            if kind in OTHER_IN_4 and not tiny_models.VERSION_5:
                self.assertEqual({f.field for f in report.findings}, {OTHER_IN_4[kind]})
                continue
            with self.subTest(kind):
                self.assertEqual(report.findings, [])
            if report.verdict == "sound":
                sound.append(kind)
            else:
                others.append(f"{kind}: {report.verdict}: {report.unjudged[:2]}")
        print(f"{len(sound)} sound: {' '.join(sound)}", *others, sep="\n", file=sys.stderr)
        if wanted is TYPES:
            self.assertGreaterEqual(len(sound), LEAST, others)


if __name__ == "__main__":
    unittest.main()
