"""`python -m dagsvm_lab` is `dagsvm-lab`."""

import sys

from .run.cli import main

sys.exit(main())
