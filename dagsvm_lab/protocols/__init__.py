"""Each paper's experiments, one module a paper: functions that return tables; `common` holds what several of them need."""
