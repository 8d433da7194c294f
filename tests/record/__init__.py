"""The committed record, apart from tests of code."""
