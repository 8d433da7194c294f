"""Print constraints with the oldest versions that pyproject.toml allows.

`make test-oldest` installs exactly those.
"""

import tomllib
from pathlib import Path

project = tomllib.loads(
    (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
)["project"]
for line in [
    *project["dependencies"],
    *sum(project["optional-dependencies"].values(), []),
]:
    print(line.replace(">=", "=="))
