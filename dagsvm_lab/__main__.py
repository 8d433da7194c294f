"""`python -m dagsvm_lab` is `dagsvm-lab`."""

import sys

from .cli import main

sys.exit(main())
