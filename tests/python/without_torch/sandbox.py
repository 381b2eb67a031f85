"""A folder like site-packages with the package, its libraries as files without code, and a torch
that records what is loaded."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]

TORCH = '''
__version__ = "{version}"

class _Operators:
    loaded_libraries = set()
    sextant = object()

    def load_library(self, path):
        print("loaded", path)

ops = _Operators()
'''


class Sandbox:
    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.site = pathlib.Path(self._folder.name)
        self.package = self.site / "sextant"
        shutil.copytree(ROOT / "python" / "sextant", self.package,
                        ignore=shutil.ignore_patterns("__pycache__"))
        return self

    def __exit__(self, *error):
        self._folder.cleanup()

    def write(self, path, content):
        path = self.site / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def torch(self, version):
        self.write("torch/__init__.py", TORCH.format(version=version))

    def library(self, minor, built_for=None, needs=()):
        """Writes the file of a library: the names of what it needs, and its torch."""
        content = b"\0" + b"".join(name.encode() + b"\0" for name in needs)
        content += f"sextant-libtorch {built_for or minor + '.0'}\0".encode()
        return self.write(f"sextant/lib/libsextant_torch-{minor}.so", content)

    def distribution(self, name, files):
        folder = f"{name}-1.0.dist-info"
        self.write(f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        record = [f"{file},," for file in [*files, f"{folder}/METADATA", f"{folder}/RECORD"]]
        self.write(f"{folder}/RECORD", "\n".join(record) + "\n")

    def own_distribution(self):
        files = [str(file.relative_to(self.site)) for file in self.package.rglob("*.py")]
        self.distribution("sextant_attention", files)

    def python(self, code, *arguments, **environment):
        """Runs the code in this folder. -S hides a torch that this Python has."""
        return subprocess.run([sys.executable, "-S", "-c", code, *arguments], cwd=self.site,
                              capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/bin:/bin", **environment})

    def error(self, code, **environment):
        """The last line of the error that ends the code, which must be one."""
        done = self.python(code, **environment)
        assert done.returncode != 0, f"no error: {done.stdout}"
        assert "loaded" not in done.stdout, done.stdout
        return done.stderr.strip().splitlines()[-1]
