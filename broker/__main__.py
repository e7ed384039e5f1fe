"""`python -m broker` is the odradek command."""

import sys

from broker.process.cli import main

sys.exit(main())
