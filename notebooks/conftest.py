"""Notebooks under nbval show no progress lines.

01 and 03 are still those of the second edition, shown beside their record of then. The
estimators' parameters have changed since (03 does not run as it stands), and their
third edition waits for a full run on a quiet machine. Until then they are not compared
here.
"""

import os

os.environ["DAGSVM_LAB_QUIET"] = "1"
collect_ignore_glob = ["01_*.ipynb", "03_*.ipynb"]
