"""`python -m odradek` is the `odradek` command."""

import sys

from odradek import main

sys.exit(main())
