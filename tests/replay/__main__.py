"""The command `python -m tests.replay`."""

import sys

from tests.replay.run import main

sys.exit(main())
