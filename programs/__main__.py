"""`python -m programs` is the odradek command."""

import sys

from programs.run.cli import main

sys.exit(main())
