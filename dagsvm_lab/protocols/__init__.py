"""Each paper's experiments, one module or more a paper: functions that return tables; `common` has the rest."""
