"""Every claim of every paper on a case in which it holds and one in which it fails."""

from importlib import import_module

import pytest
from both_ways import without_case, wrong

from dagsvm_lab.papers import papers

MODULES = {
    "01_platt2000": "test_platt2000",
    "02_yu2011": "test_yu2011",
    "03_wang2011": "test_wang2011",
    "04_don2018": "test_don2018",
}


@pytest.mark.parametrize("key", MODULES)
def test_every_claim_is_tried_both_ways(key):
    cases = import_module(MODULES[key]).BOTH_WAYS
    assert wrong(papers()[key], cases) == []
    assert without_case(papers()[key], cases) == []
