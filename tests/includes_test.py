#!/usr/bin/env python3
"""What packaging/includes accepts and refuses, on small trees. usage: includes_test.py SOURCE_FOLDER"""
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(sys.argv.pop(1), "packaging/includes")
PAGE = """\
| folder | holds | may include |
|---|---|---|
| `gpu/base` | | nothing |
| `gpu/tmu` | | all above |
| `ioctl/link/wire.h` | | nothing |
| `ioctl` | | all above |
| `shim` | | `ioctl/link/wire.h` |

| folder | never includes | because |
|---|---|---|
| `gpu` | `fcntl.h` `linux` | |
"""
TREE = {"docs/architecture.md": PAGE, "gpu/base/lanes.h": "", "gpu/tmu/unit.h": '#include "gpu/base/lanes.h"\n',
        "ioctl/link/wire.h": "", "ioctl/core/file.h": '#include "gpu/tmu/unit.h"\n#include "ioctl/link/wire.h"\n#include <fcntl.h>\n',
        "shim/shim.cc": '#include "ioctl/link/wire.h"\n'}


class IncludesTest(unittest.TestCase):
    def run_on(self, **changes):
        """Exit status and output for the tree with some files replaced, their names with __ for / and ___ for '.'."""
        with tempfile.TemporaryDirectory() as tree:
            for path, text in {**TREE, **{n.replace("___", ".").replace("__", "/"): t for n, t in changes.items()}}.items():
                os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
                with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                    file.write(text)
            done = subprocess.run([sys.executable, SCRIPT, tree], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

    def test_accepts_what_keeps_the_order(self):
        self.assertEqual(self.run_on(), (0, ""))

    def test_refuses_a_folder_below(self):
        status, said = self.run_on(gpu__base__lanes___h='\n#include "gpu/tmu/unit.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("gpu/base/lanes.h:2: gpu/base includes gpu/tmu/unit.h, but may not include gpu/tmu", said)

    def test_refuses_what_the_row_does_not_name(self):
        status, said = self.run_on(shim__shim___cc='#include "ioctl/core/file.h"\n')
        self.assertEqual((status, said), (1, "shim/shim.cc:1: shim includes ioctl/core/file.h, but may not include ioctl\n"))

    def test_holds_a_file_to_its_own_row(self):
        status, _ = self.run_on(ioctl__link__wire___h='#include "ioctl/core/file.h"\n')
        self.assertEqual(status, 1)

    def test_refuses_folders_that_are_not_listed(self):
        status, said = self.run_on(gpu__vpm__fetch___h="")
        self.assertEqual(status, 1)
        self.assertIn("gpu/vpm/fetch.h: its folder is not in the table", said)

    def test_counts_a_folder_inside_a_listed_one_to_it(self):
        self.assertEqual(self.run_on(gpu__tmu__texel__etc2___h='#include "gpu/tmu/unit.h"\n'), (0, ""))

    def test_refuses_forbidden_headers_alone_and_by_folder(self):
        status, said = self.run_on(gpu__tmu__a___h="#include <fcntl.h>\n", gpu__tmu__b___h="#  include <linux/dma-buf.h>\n")
        self.assertEqual(status, 1)
        self.assertIn("gpu/tmu/a.h:1: gpu never includes fcntl.h", said)
        self.assertIn("gpu/tmu/b.h:1: gpu never includes linux", said)

    def test_refuses_headers_named_from_their_own_folder(self):
        status, _ = self.run_on(gpu__tmu__a___h='#include "unit.h"\n')
        self.assertEqual(status, 1)

    def test_refuses_rows_without_a_folder(self):
        status, said = self.run_on(docs__architecture___md=PAGE.replace("| `shim`", "| `skim`"))
        self.assertEqual(status, 1)
        self.assertIn("skim does not exist", said)

    def test_refuses_a_table_against_its_own_order(self):
        for wrong in ("`shim`", "some"):
            status, said = self.run_on(docs__architecture___md=PAGE.replace("`gpu/base` | | nothing", "`gpu/base` | | " + wrong))
            self.assertEqual(status, 2, said)

    def test_refuses_a_page_without_the_table(self):
        self.assertEqual(self.run_on(docs__architecture___md="")[0], 2)


if __name__ == "__main__":
    unittest.main()
