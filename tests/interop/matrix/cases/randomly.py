# SPDX-License-Identifier: Apache-2.0
"""Random operations on a few files (random_io.py), with a new mount now and then."""
from case import Failed, case
from random_io import Difference, RandomIo


def run(t, seconds, seed):
    work = RandomIo(t.there, seed, behind=t.here)
    try:
        work.run(seconds, remount=t.remount)
    except Difference as difference:
        raise Failed(f"seed {seed}: {difference}") from None
    print(work.summary())


@case("random-io", limit=120)
def random_io(t):
    run(t, 20, 1)


@case("random-io-long", limit=1500, slow=True)
def random_io_long(t):
    run(t, 1200, 2)
