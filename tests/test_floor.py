"""What installs, what imports, and what is promised in more than one file."""

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

# what a checkout's environment holds; other extras are installed when asked for
EXTRAS = ("test", "notebooks", "cluster")


def requirements(root, *extras: str) -> dict[str, Requirement]:
    """The project's own requirements by name, with those of `extras`."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    asked = project["dependencies"] + [
        r for e in extras for r in project["optional-dependencies"][e]
    ]
    return {canonicalize_name(r.name): r for r in map(Requirement, asked)}


def constraints(root) -> dict[str, str]:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {
        canonicalize_name(name): v
        for name, _, v in (line.partition("==") for line in lines)
    }


def test_environment_asks_for_what_pyproject_asks_for(root):
    environment = yaml.safe_load(
        (root / "environment.yml").read_text(encoding="utf-8")
    )["dependencies"]
    conda = [
        Requirement(line)
        for line in environment
        if isinstance(line, str) and ">=" in line
    ]
    assert {canonicalize_name(r.name): r.specifier for r in conda} == {
        name: r.specifier for name, r in requirements(root, *EXTRAS).items()
    }
    python = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]["requires-python"]
    [minor] = [
        d.removeprefix("python=")
        for d in environment
        if isinstance(d, str) and d.startswith("python=")
    ]
    assert re.fullmatch(r"3\.\d+", minor)
    assert Requirement(f"python{python}").specifier.contains(minor)


def test_pip_understands_the_lines_meant_for_it(root, tmp_path):
    """conda hands the lines of `pip:` to pip as a requirements file: no options."""
    from pip._internal.network.session import PipSession
    from pip._internal.req.constructors import install_req_from_parsed_requirement
    from pip._internal.req.req_file import parse_requirements

    environment = yaml.safe_load(
        (root / "environment.yml").read_text(encoding="utf-8")
    )["dependencies"]
    [lines] = [d["pip"] for d in environment if isinstance(d, dict)]
    (tmp_path / "pip.txt").write_text(
        "\n".join(line.replace("-e .", f"-e {root}") for line in lines)
    )
    parsed = list(parse_requirements(str(tmp_path / "pip.txt"), PipSession()))
    assert [
        (p.is_editable, install_req_from_parsed_requirement(p).link.file_path)
        for p in parsed
    ] == [(True, str(root))]


def test_constraints_are_names_and_versions_that_satisfy_pyproject(root):
    for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.+!]*", line), line
    pinned = constraints(root)
    for name, requirement in requirements(root, *EXTRAS, "qp", "bench", "site").items():
        assert name in pinned and requirement.specifier.contains(
            pinned[name], prereleases=True
        ), requirement


def test_constraints_cover_everything_that_is_pulled_in(root):
    from importlib.metadata import PackageNotFoundError, distribution

    if distribution("jupyterlab").version != constraints(root)["jupyterlab"]:
        pytest.skip("other versions than the pinned ones may need other packages")
    pinned = constraints(root)
    todo = list(requirements(root, *EXTRAS).values())
    seen = set()
    while todo:
        requirement = todo.pop()
        key = (canonicalize_name(requirement.name), *sorted(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        assert key[0] in pinned, f"{requirement.name} is not pinned"
        try:
            inner = [
                Requirement(text)
                for text in distribution(requirement.name).requires or []
            ]
        except PackageNotFoundError:
            continue
        extras = ("", *requirement.extras)
        todo += [
            r
            for r in inner
            if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras)
        ]
    assert len(seen) > 50


def imported(path) -> set[str]:
    """The top-level names of other projects that a module imports anywhere."""
    import ast

    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names)


def test_every_import_is_declared(root):
    """By the project itself, and by the extra that the module belongs to."""
    from importlib.metadata import packages_distributions

    providers = {
        name: set(map(canonicalize_name, found))
        for name, found in packages_distributions().items()
    }
    # which need not be installed here
    providers["sklearnex"] = {"scikit-learn-intelex"}
    providers["cvxopt"] = {"cvxopt"}
    everything = set(requirements(root, *EXTRAS, "bench", "site"))
    for path in (root / "dagsvm_lab").rglob("*.py"):
        for name in imported(path):
            assert providers.get(name, set()) & everything, (
                f"{path.name} imports {name}"
            )


def test_an_estimators_user_needs_only_the_projects_own_requirements(root):
    """With every extra's packages out of reach, estimators fit and data load."""
    extras = set(
        "pandas matplotlib seaborn IPython papermill nbformat cvxopt psutil yaml "
        "distributed dask jupyter_client pytest".split()
    )
    code = f"""
import sys
class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in {extras!r}
        return None if hidden else self.finder.find_spec(name, path, target)
sys.meta_path = [Hiding(finder) for finder in sys.meta_path]
import dagsvm_lab
from dagsvm_lab.run.cli import main
d = dagsvm_lab.load("iris", scaled=True)
for name in dagsvm_lab.__all__:
    if name.endswith("SVC"):
        est = getattr(dagsvm_lab, name)(C=10, gamma=1.0).fit(d.X, d.y)
        assert est.score(d.X, d.y) > 0.9, name
assert main(["data", "list"]) == 0 and main(["data", "verify"]) == 0
sys.exit(main(["papers"]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (
        run.returncode == 1
        and "dagsvm-lab[notebooks]" in run.stderr
        and "Traceback" not in run.stderr
    ), run.stderr


def test_import_pulls_in_no_notebook_machinery():
    heavy = (
        "{'matplotlib', 'IPython', 'jupyter_client', 'papermill', 'pandas', 'sklearn'}"
    )
    code = f"import sys, dagsvm_lab; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", dagsvm_lab.__all__)
def test_every_top_level_name_is_there_and_documented(name):
    value = getattr(dagsvm_lab, name)
    assert name in dir(dagsvm_lab) and (value.__doc__ or "").strip()


def test_one_version_everywhere(root, capsys):
    from dagsvm_lab.run.cli import main

    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.split() == ["dagsvm-lab", dagsvm_lab.__version__]
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == dagsvm_lab.__version__
    newest = re.search(
        r"^## \[(.+?)\]", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
    )
    assert newest[1] == dagsvm_lab.__version__
    authors = [r["authors"][0]["family-names"] for r in citation["references"]]
    assert authors == ["Platt", "Yu", "Wang", "Rathgamage Don"]


def test_commits_are_checked_with_the_versions_that_make_lint_uses(root):
    hooks = yaml.safe_load(
        (root / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    )["repos"]
    revisions = {
        h["repo"].rpartition("/")[2].removesuffix("-pre-commit"): h["rev"].removeprefix(
            "v"
        )
        for h in hooks
    }
    assert revisions == {
        name: constraints(root)[name] for name in ("ruff", "codespell", "nbstripout")
    }


def makefile_targets(root) -> set[str]:
    return set(
        re.findall(r"^([\w-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.M)
    )


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_pages_name_only_what_is_there(root, page):
    from dagsvm_lab.run.cli import _parser

    text = (root / page).read_text(encoding="utf-8")
    for line in re.findall(r"^    (dagsvm-lab .*)$", text, re.M):
        assert _parser().parse_args(shlex.split(line, comments=True)[1:]).run
    for path in re.findall(r"\]\((?!http|#)([^)#]+)", text):
        assert (root / path).exists(), path
    for target in re.findall(r"(?:`|^    )make ([\w-]+)\b", text, re.M):
        assert target in makefile_targets(root), target


def test_workflows_run_make_targets_and_pin_actions(root):
    """Each step is a make target that runs here too; actions are named by commits."""
    files = [
        yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in (root / ".github" / "workflows").glob("*.yml")
    ]
    steps = [
        step for file in files for job in file["jobs"].values() for step in job["steps"]
    ]
    assert len(steps) > 10
    for file in files:
        assert file["name"]
        assert file["permissions"]
        assert file[True], "the key `on`, which YAML reads as True"
        for job in file["jobs"].values():
            systems = (
                job.get("strategy", {}).get("matrix", {}).get("os", [job["runs-on"]])
            )
            assert set(systems) <= {"ubuntu-latest", "macos-latest", "windows-latest"}
    for step in steps:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
        for target in re.findall(r"^make ([\w-]+)", step.get("run", ""), re.M):
            assert target in makefile_targets(root)
