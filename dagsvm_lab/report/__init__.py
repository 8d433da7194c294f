"""What the papers said beside what was measured: verdicts, claims, scorecard, record,
tables.
"""
