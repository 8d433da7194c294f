"""`python -m dagsvm_lab` is `dagsvm-lab`."""

from .run.cli import main

raise SystemExit(main())
