"""The command and the libraries need no symbol that RHEL 9 lacks: glibc 2.34, libstdc++ of g++ 11.

    symbol_versions_test.py FILE...

A wheel that needs more is refused by make_wheel.sh (manylinux_2_34), an hour later. The test is
skipped on systems newer than Debian 12, on which wheels are made: their headers ask for newer
symbols wherever a number is read.
"""
import os
import re
import subprocess
import sys
import unittest

NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}
SYMBOL = re.compile(r"(\S+)@(GLIBC|GLIBCXX|CXXABI)_([0-9.]+)$", re.MULTILINE)


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def newer(listed):
    """The symbols of nm's list whose versions are newer."""
    return [found[0] for found in SYMBOL.finditer(listed) if numbers(found[3]) > NEWEST[found[2]]]


class SymbolVersions(unittest.TestCase):
    files = []

    def test_newer_versions_are_found(self):
        listed = "\n".join([
            "                 U _ZNSt18condition_variable4waitE@GLIBCXX_3.4.30",
            "                 U hypot@GLIBC_2.35",
            "                 U log@GLIBC_2.29",
            "                 U pthread_create@GLIBC_2.34",
            "                 w __cxa_finalize@GLIBC_2.2.5",
            "                 U png_init",
        ])
        self.assertEqual(newer(listed), ["_ZNSt18condition_variable4waitE@GLIBCXX_3.4.30",
                                         "hypot@GLIBC_2.35"])

    def test_no_file_needs_them(self):
        self.assertTrue(self.files)
        for file in self.files:
            listed = subprocess.run(["nm", "-D", "--undefined-only", file], capture_output=True,
                                    text=True, check=True, env={**os.environ, "LC_ALL": "C"})
            self.assertIn("@GLIBC_", listed.stdout, file)
            self.assertEqual(newer(listed.stdout), [], file)


if __name__ == "__main__":
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    if numbers(glibc) > (2, 36):
        print(f"skipped: glibc {glibc} is newer than that of Debian 12")
        sys.exit(77)
    SymbolVersions.files = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
