"""`python -m broker` is the odradek command."""

import sys

from broker.cli import main

sys.exit(main())
