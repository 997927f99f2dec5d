# SPDX-License-Identifier: Apache-2.0
"""Programs that people trust their data to, with it on the mount, while the server dies and they do.

All that they need beyond the guest comes along from this machine: `tools` and `trees` of the cases.
"""
import contextlib
import glob
import os
import signal
import sqlite3
import time

import sides
from bench import put
from case import case, expect, expect_equal
from sides import run, wait_for
from worker import Worker

# A server that is new waits for what its clients had before, for as long as a lease.
PATIENCE = 300


# --- SQLite ---------------------------------------------------------------------------------------

ACCOUNTS = 50
EACH = 1000


def open_bank(path):
    # Waits for a lock of a process that was killed: at the server it may last as long as a grace period.
    bank = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    bank.execute("PRAGMA synchronous=FULL")
    return bank


def transferring(path):
    """A worker that moves money between accounts and counts what it has committed."""
    def transfer(worker):
        bank = open_bank(path)
        while True:
            number = worker.progress + 1
            bank.execute("BEGIN IMMEDIATE")
            bank.execute("UPDATE accounts SET money = money - 1 WHERE id = ?", (number % ACCOUNTS,))
            bank.execute("UPDATE accounts SET money = money + 1 WHERE id = ?", (number * 7 % ACCOUNTS,))
            bank.execute("INSERT INTO done (what) VALUES (?)", (os.urandom(300),))
            bank.execute("COMMIT")
            worker.progress = number
    return Worker(transfer)


def check_bank(path, committed):
    bank = open_bank(path)
    expect_equal(bank.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity_check")
    expect_equal(bank.execute("SELECT sum(money), count(*) FROM accounts").fetchone(),
                 (ACCOUNTS * EACH, ACCOUNTS), "money and accounts")
    done = bank.execute("SELECT count(*) FROM done").fetchone()[0]
    # What was on its way when its process died may be there or not.
    expect(committed <= done <= committed + 4, f"{done} transfers are there, {committed} were committed")
    bank.close()


@case("sqlite", limit=900, slow=True)
def sqlite(t):
    """A database whose process is killed at work, twice, and whose server is, while it goes on."""
    path = t.path("bank.db")
    bank = open_bank(path)
    bank.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, money INTEGER NOT NULL)")
    bank.execute("CREATE TABLE done (id INTEGER PRIMARY KEY, what BLOB)")
    bank.execute("BEGIN")
    bank.executemany("INSERT INTO accounts VALUES (?, ?)", ((number, EACH) for number in range(ACCOUNTS)))
    bank.execute("COMMIT")
    bank.close()
    committed = 0
    for end in ("process", "server", "process"):
        worker = transferring(path)
        worker.wait_until(10, PATIENCE)
        if end == "server":
            at = worker.progress
            t.server.crash_and_restart()
            worker.wait_until(at + 10, PATIENCE)
        worker.kill()
        wait_for(worker.ended, 60, "the killed process is gone")
        committed += worker.progress
        check_bank(path, committed)
    t.remount()
    check_bank(path, committed)


# --- git, make, gcc -------------------------------------------------------------------------------

SOURCES = 60
GCC = "/usr/lib/gcc/x86_64-linux-gnu/12"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
BUILD_TREES = (
    *(f"{GCC}/{name}" for name in ("cc1", "collect2", "liblto_plugin.so", "crtbegin*.o", "crtend*.o", "libgcc*")),
    *(f"{LIBRARIES}/{name}" for name in ("*crt[1in].o", "libc.so", "libc_nonshared.a")),
    *(f"/usr/bin/{name}" for name in ("gcc", "gcc-12", "as", "ld", "x86_64-linux-gnu-gcc-12", "x86_64-linux-gnu-as",
                                      "x86_64-linux-gnu-ld", "x86_64-linux-gnu-ld.bfd")),
)


def git(*words, limit=PATIENCE):
    return run(sides.GIT, "-c", "user.name=t", "-c", "user.email=t@t", *words, limit=limit,
               env=sides.git_environment())


def make_repository(path):
    """Builds with make and cc alone."""
    os.makedirs(path)
    for number in range(SOURCES):
        put(f"{path}/f{number}.c", f"int f{number}(int x) {{ return x * {number} + 1; }}\n".encode())
    put(f"{path}/main.c", b"int f7(int);\nint main(void) { return f7(6) != 43; }\n")
    put(f"{path}/Makefile", b"prog: $(patsubst %.c,%.o,$(wildcard *.c))\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -c -o $@ $<\n")
    put(f"{path}/.gitignore", b"*.o\nprog\n")
    git("-C", path, "init", "-q", "-b", "main", "--template=", ".")
    git("-C", path, "add", ".")
    git("-C", path, "commit", "-q", "-m", "one")
    put(f"{path}/f0.c", b"int f0(int x) { return x; }\n")
    git("-C", path, "commit", "-q", "-a", "-m", "two")


@case("git-build", limit=1200, slow=True, tools=("git", "make"), trees=BUILD_TREES)
def git_build(t):
    """Clone, build, gc and fsck, and the server dies in the middle of the build."""
    sides.set_up_git()
    if not os.path.isdir("/run/repository"):
        make_repository("/run/repository")
    clone = t.path("clone")
    git("clone", "-q", "--template=", "file:///run/repository", clone)

    def build(worker):
        run(f"{sides.PROGRAMS}/make", "-s", "-C", clone, "-j2", "prog", limit=PATIENCE * 2,
            env=sides.our_environment())
        worker.progress = 1
    worker = Worker(build)
    wait_for(lambda: worker.ended() or len(glob.glob(f"{clone}/*.o")) >= SOURCES // 4, PATIENCE, "a quarter is built")
    expect(not worker.ended(), "the build was over before the server died")
    t.server.crash_and_restart()
    worker.finish(PATIENCE * 2)
    git("-C", clone, "gc", "-q")
    for _ in range(2):
        run(f"{clone}/prog")
        expect_equal(len(glob.glob(f"{clone}/*.o")), SOURCES + 1, "object files")
        git("-C", clone, "fsck", "--full")
        expect_equal(git("-C", clone, "status", "--porcelain"), "", "git status")
        t.remount()


# --- PostgreSQL -----------------------------------------------------------------------------------

POSTGRES_TREES = ("/usr/lib/postgresql/*/bin", "/usr/lib/postgresql/*/lib/*.so", "/usr/share/postgresql/*",
                  "/usr/share/zoneinfo/UTC", "/usr/share/zoneinfo/Etc/UTC")
POSTGRES = 990  # user and group
LOCAL = "/run/postgres"  # socket and log
LOAD = 45  # seconds


class Postgres:
    """The database in a folder of the mount, under a user of its own."""

    def __init__(self, data):
        self.programs, = glob.glob("/usr/lib/postgresql/*/bin")
        self.data = data
        with open("/etc/passwd", encoding="ascii") as users:
            known = "postgres:" in users.read()
        if not known:
            with open("/etc/passwd", "a", encoding="ascii") as users:
                users.write(f"postgres:x:{POSTGRES}:{POSTGRES}::{LOCAL}:/bin/sh\n")
        for folder in (LOCAL, data):
            os.makedirs(folder, exist_ok=True)
            os.chown(folder, POSTGRES, POSTGRES)
            os.chmod(folder, 0o700)

    def run(self, program, *words, limit=PATIENCE):
        return run("setpriv", f"--reuid={POSTGRES}", f"--regid={POSTGRES}", "--clear-groups", "--",
                   f"{self.programs}/{program}", *words, limit=limit,
                   env=dict(sides.our_environment(), PGHOST=LOCAL, PGDATABASE="postgres", HOME=LOCAL, LC_ALL="C",
                            TZ="UTC"))

    def control(self, *words):
        return self.run("pg_ctl", "-D", self.data, "-l", f"{LOCAL}/log", "-w", "-t", str(PATIENCE), *words,
                        limit=PATIENCE + 20)

    def start(self):
        self.control("-o", f"-k {LOCAL} -c listen_addresses=''", "start")

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.stat(f"/proc/{pid}").st_uid == POSTGRES:
                    found.append(int(pid))
            except OSError:
                continue
        return found

    def crash(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):  # one that just went by itself
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not self.processes(), 60, "the database is gone")

    def check(self, transactions):
        """What pgbench committed is there, its sums agree, and pg_amcheck finds nothing."""
        sums = ("select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history) and "
                "(select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history), "
                "(select count(*) from pgbench_history)")
        expect_equal(self.run("psql", "-At", "-c", sums).strip(), f"t|{transactions}",
                     "that sums agree, and the number of transactions")
        self.run("pg_amcheck", "--install-missing", "--heapallindexed", limit=PATIENCE * 2)


@case("postgres", limit=2400, slow=True, trees=POSTGRES_TREES)
def postgres(t):
    """pgbench while the server dies twice, a crash of the database itself, and a new mount."""
    database = Postgres(t.path("data"))
    database.run("initdb", "-D", database.data, "-A", "trust", "--no-instructions", limit=PATIENCE * 2)
    database.start()
    database.run("pgbench", "-q", "-i", "-s", "1", limit=PATIENCE * 2)

    def load(worker):
        said = database.run("pgbench", "-c", "4", "-T", str(LOAD), limit=LOAD + PATIENCE * 2)
        values = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
        expect(values["number of failed transactions"].startswith("0 "), f"transactions failed: {said}")
        worker.progress = int(values["number of transactions actually processed"])
    worker = Worker(load)
    for _ in range(2):
        time.sleep(LOAD / 4)
        expect(not worker.ended(), "pgbench was over before the server died")
        t.server.crash_and_restart()
    worker.finish(LOAD + PATIENCE * 2)
    database.crash()
    database.start()
    database.check(worker.progress)
    database.control("stop")
    t.remount()
    database.start()
    database.check(worker.progress)
    database.control("stop")
