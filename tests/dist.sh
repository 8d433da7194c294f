#!/bin/sh
# The built wheel in an empty environment, without this checkout; then the sdist's own tests. $1: a Python.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" -m venv "$work/wheel"
"$work/wheel/bin/python" -m pip install --quiet "$here"/dist/*.whl
cd "$work"
"$work/wheel/bin/python" - <<'P'
import sys, tempfile, pathlib
import dagsvm_lab
from dagsvm_lab import DAGSVC, load
assert not any(m in sys.modules for m in ("pandas", "matplotlib", "cvxopt", "papermill"))
d = load("letter", scaled=True)
est = DAGSVC(C=10, gamma=2.5).fit(d.X_train[:2000], d.y_train[:2000])
path = pathlib.Path(tempfile.mkdtemp(), "model.npz")
est.save(path)
again = DAGSVC.load(path)
assert (again.predict(d.X_test) == est.predict(d.X_test)).all() and est.score(d.X_test, d.y_test) > 0.8
for heavy in ("pandas", "matplotlib", "cvxopt", "papermill", "jupyterlab"):
    try:
        __import__(heavy)
    except ImportError:
        continue
    sys.exit(f"the wheel pulled in {heavy}")
P
"$work/wheel/bin/dagsvm-lab" --version
"$work/wheel/bin/dagsvm-lab" data list > /dev/null
"$work/wheel/bin/dagsvm-lab" data verify > /dev/null
if "$work/wheel/bin/dagsvm-lab" papers 2> said; then exit 1; fi
[ "$(wc -l < said)" = 1 ] || { cat said; exit 1; }
tar xzf "$here"/dist/*.tar.gz
cd dagsvm_lab-*
make test-fast PYTHON="$1"
make test-bare PYTHON="$1"
echo "wheel and sdist hold"
