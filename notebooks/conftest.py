"""Notebooks under nbval show no progress lines."""

import os

os.environ["DAGSVM_LAB_QUIET"] = "1"
