# SPDX-License-Identifier: Apache-2.0
"""What a case of the interop matrix is, and the registry of all of them.

A case is a function that gets a `Bench` (bench.py): a mounted directory, the exported directory
behind it, and the ways to disturb what is between. It passes by returning. It is written once and
runs in every cell (cells.py), but for those that cells.py rules out with a reason.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a case wants to be different from the defaults. None: as it comes."""
    export: str = "rw,no_root_squash,insecure"
    credits: int | None = None
    inline: int | None = None
    transfer: int | None = None  # rsize and wsize
    crc: bool | None = None
    mtu: int | None = None
    nconnect: int | None = None  # connections of the mount
    keys: tuple = ()  # more lines for the configuration of nfs-rdmad
    options: tuple = ()  # more options of mount.nfs-rdma


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    run: object
    limit: int = 90  # seconds, for setting up, running and tearing down
    slow: bool = False  # only with --slow
    kind: str = "mount"  # "mount" needs a mounted directory, "libnfs" has its own client
    programs: tuple = ()  # of ours, beside those that its cells need
    tools: tuple = ()  # programs of the host that the guest has not: in sides.PROGRAMS there
    trees: tuple = ()  # globs of files and folders of the host, below /usr, that the guest gets where they are here
    settings: Settings = Settings()


CASES = {}


def case(name, **options):
    """Registers a function as a case; keywords that are fields of Settings go there."""
    fields = {field.name for field in dataclasses.fields(Settings)}
    settings = Settings(**{key: value for key, value in options.items() if key in fields})
    rest = {key: value for key, value in options.items() if key not in fields}

    def register(function):
        if name in CASES:
            raise ValueError(f"two cases are called {name}")
        CASES[name] = Case(name, function, settings=settings, **rest)
        return function
    return register


class Failed(Exception):
    """A case did not see what it should."""


def expect(condition, text):
    if not condition:
        raise Failed(text)


def expect_equal(actual, wanted, what):
    if actual != wanted:
        raise Failed(f"{what}: {_short(actual)}, not {_short(wanted)}")


def _short(value):
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:60]}...{text[-40:]}"


def expect_error(wanted, what, call, *arguments):
    """The call fails with this errno, or one of these."""
    try:
        call(*arguments)
    except OSError as error:
        if not isinstance(wanted, tuple):
            expect_equal(error.errno, wanted, f"errno of {what}")
        else:
            expect(error.errno in wanted, f"errno of {what}: {error.errno}, not one of {wanted}")
        return
    raise Failed(f"{what} succeeded")
