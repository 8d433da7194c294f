"""The ground floor: what installs, what imports, what is promised in more than one file."""

import re
import shlex
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dagsvm_lab


def requirements(root, *extras: str) -> dict[str, Requirement]:
    """The project's own requirements by name, with those of `extras`."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    asked = project["dependencies"] + [r for e in extras for r in project["optional-dependencies"][e]]
    return {canonicalize_name(r.name): r for r in map(Requirement, asked)}


def constraints(root) -> dict[str, str]:
    lines = (root / "constraints.txt").read_text().splitlines()
    return {canonicalize_name(name): v for name, _, v in (line.partition("==") for line in lines)}


def test_environment_asks_for_what_pyproject_asks_for(root):
    environment = yaml.safe_load((root / "environment.yml").read_text())["dependencies"]
    conda = {r.name: str(r) for r in map(Requirement, (d for d in environment if isinstance(d, str)))}
    python = tomllib.loads((root / "pyproject.toml").read_text())["project"]["requires-python"]
    assert conda.pop("python") == f"python{python}"
    assert conda.pop("pip") == "pip"
    assert conda == {name: str(r) for name, r in requirements(root, "test", "cluster").items()}


def test_constraints_are_names_and_versions_that_satisfy_pyproject(root):
    for line in (root / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.+!]*", line), line
    pinned = constraints(root)
    for name, requirement in requirements(root, "test", "bench", "cluster").items():
        assert name in pinned and requirement.specifier.contains(pinned[name], prereleases=True), requirement


def test_constraints_cover_everything_that_is_pulled_in(root):
    from importlib.metadata import PackageNotFoundError, distribution

    pinned, todo, seen = constraints(root), list(requirements(root, "test", "cluster").values()), set()
    while todo:
        requirement = todo.pop()
        key = (canonicalize_name(requirement.name), *sorted(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        assert key[0] in pinned, f"{requirement.name} is not pinned"
        try:
            inner = [Requirement(text) for text in distribution(requirement.name).requires or []]
        except PackageNotFoundError:
            continue
        extras = ("", *requirement.extras)
        todo += [r for r in inner if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras)]
    assert len(seen) > 50


def test_import_is_quick_and_pulls_in_no_notebook_machinery():
    code = (
        "import sys, time; start = time.perf_counter(); import dagsvm_lab; print(time.perf_counter() - start);"
        "assert not {'matplotlib', 'IPython', 'jupyter_client', 'papermill', 'pandas'} & set(sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(3)]
    assert [run.stderr for run in runs] == ["", "", ""]
    assert min(float(run.stdout) for run in runs) < 0.5


@pytest.mark.parametrize("name", dagsvm_lab.__all__)
def test_every_top_level_name_is_there_and_documented(name):
    value = getattr(dagsvm_lab, name)
    assert name in dir(dagsvm_lab) and (value.__doc__ or "").strip()


def test_citation_names_the_four_papers(root):
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    assert [r["authors"][0]["family-names"] for r in citation["references"]] == [
        "Platt", "Yu", "Wang", "Rathgamage Don",
    ]  # fmt: skip
    assert citation["version"] == dagsvm_lab.__version__


def test_ci_runs_the_readmes_command_and_nothing_else(root):
    lines = [line for line in (root / ".ci" / "run").read_text().splitlines() if line and line[0] != "#"]
    assert lines == ['cd "$(dirname "$0")/.." && exec make test']
    assert "make test" in (root / "README.md").read_text()


def test_readme_says_only_what_works(root, capsys):
    from dagsvm_lab.run.cli import _parser

    text = (root / "README.md").read_text()
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^    (dagsvm-lab .*)$", text, re.M)]
    assert len(commands) >= 8
    for command in commands:
        assert _parser().parse_args(command[1:]).run
    example = re.search(r"```python\n(.*?)```", text, re.S)[1]
    exec(example.replace("4000", "500"), {})
    assert re.fullmatch(r"(\w+SVC: [\d.]+% wrong, \d+ kernel evaluations a letter\n){2}", capsys.readouterr().out)
    for path in re.findall(r"\]\(([^)]+)\)", text):
        assert (root / path).exists(), path
    makefile = (root / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)\b", text):
        assert re.search(rf"^{target}:", makefile, re.M), target
