"""Nothing that is read from a file or heard from others is run: no eval, no pickle, no shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from heimdall.system import paths

CALLS = {"eval", "exec", "compile", "execfile", "__import__"}
MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
MODULES |= {"runpy", "code", "codeop", "commands"}
SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
SHELLS |= {"asyncio.create_subprocess_shell", "yaml.load", "yaml.unsafe_load"}
FILES = sorted([*(paths.ROOT / "heimdall").rglob("*.py"), *paths.APPS.rglob("*.py")])


def problems(text: str) -> Iterator[str]:
    """What in a module would run what it reads, by line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Call):
            yield from (f"{node.lineno}: {said}" for said in _called(node))
            continue
        else:
            continue
        found = {name for name in names if name.split(".")[0] in MODULES or name in SHELLS}
        yield from (f"{node.lineno}: import {name}" for name in sorted(found))


def _called(call: ast.Call) -> Iterator[str]:
    name = ast.unparse(call.func)
    given = {each.arg: ast.unparse(each.value) for each in call.keywords}
    if name in CALLS or name.removeprefix("builtins.") in CALLS or name in SHELLS:
        yield f"{name}()"
    if given.get("shell", "False") != "False":
        yield "a shell"
    if given.get("allow_pickle", "False") != "False":
        yield "numpy's pickles"
    if name == "torch.load" and given.get("weights_only") != "True":
        yield "torch.load without weights_only=True"


@pytest.mark.parametrize(
    "text",
    [
        "eval('1')",
        "import builtins\nbuiltins.exec(text)",
        "from os import system",
        "import os\nos.system('ls')",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import subprocess\nsubprocess.Popen('ls', shell=asked)",
        "import pickle",
        "from joblib import load",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import torch\ntorch.load(path)",
    ],
)
def test_what_would_run_it_is_found(text):
    assert list(problems(text))


def test_what_is_harmless_is_not():
    text = "re.compile('a'); model.eval(); np.load(path, allow_pickle=False); run(['ls'])\n"
    assert not list(problems(text + "torch.load(path, weights_only=True)"))


def test_nothing_that_is_read_is_run():
    assert len(FILES) > 300
    found = [
        f"{file.relative_to(paths.ROOT)}:{said}"
        for file in FILES
        for said in problems(Path(file).read_text(encoding="utf-8"))
    ]
    assert found == []
