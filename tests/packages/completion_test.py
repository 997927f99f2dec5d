#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""completion_test: what bash completes is what the programs say to --help.

  tests/packages/completion_test.py BIN

BIN is the folder of the programs. Bash runs config/files/nfs-rdma.bash-completion as it does for somebody who
presses Tab; only compopt, which works nowhere else, is a function that notes what it was told.
The options of mount -o have a test of their own (tests/unit/client/mount/completion_test.cc).
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPLETION = os.path.join(ROOT, "config", "files", "nfs-rdma.bash-completion")
BIN = ""

# Bash's own cutting of the line into words is not looked at by the completion; the rest is as with Tab.
SHELL = r"""
compopt() { echo "compopt $*"; }
. "$1"
COMP_LINE=$2 COMP_POINT=${#2}
command=${2%% *}
function=$(complete -p "${command##*/}")
function=${function#*-F }
"${function%% *}" "${command##*/}" '' ''
printf 'offer %s\n' "${COMPREPLY[@]}"
"""


def complete(line):
    """What Tab at the end of `line` offers, and what readline is told to look for besides."""
    done = subprocess.run(["bash", "--norc", "-uc", SHELL, "bash", COMPLETION, line], check=True,
                          capture_output=True, text=True, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
    if done.stderr:
        raise AssertionError(f"{line!r}: {done.stderr}")
    lines = done.stdout.splitlines()
    return ({s[len("offer "):] for s in lines if s.startswith("offer ")} - {""},
            {s for s in lines if s.startswith("compopt ")})


def say(*words):
    done = subprocess.run([os.path.join(BIN, words[0]), *words[1:]], check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


class Option:
    """A row of the table that Boost.Program_options prints."""

    def __init__(self, short, name, argument, text):
        self.short, self.name, self.argument, self.text = short, name, argument, text

    def choices(self):
        found = re.search(r"((?:[a-z]+, )+[a-z]+) or ([a-z]+)", self.text)
        return {*found[1].split(", "), found[2]} if found else set()


def options_of(text):
    found = []
    for line in text.split("Options:\n", 1)[1].splitlines():
        row = re.match(r"  (?:-(\w) \[ )?--([\w-]+)(?: \])?(?: (\S.*?))??(?:  +| (?=more than|print)|$)(.*)", line)
        if not line.strip():
            break
        if row:
            argument = (row[3] or "").removesuffix(" ]")
            # A long argument leaves one blank before the text.
            found.append(Option(row[1], "--" + row[2], argument, row[4]))
        else:
            found[-1].text += " " + line.strip()
    return found


class Completion(unittest.TestCase):
    def setUp(self):
        self.commands = re.findall(r"^  (\w+) +\S", say("nfs-rdma", "--help"), re.M)
        self.assertGreater(len(self.commands), 10)

    def test_commands(self):
        offered, _ = complete("nfs-rdma ")
        self.assertEqual(offered, {*self.commands, "help", "--help", "--version"})
        self.assertEqual(complete("nfs-rdma st")[0], {"stat", "status"})

    def check_options(self, line, text):
        options = options_of(text)
        self.assertIn("--help", {o.name for o in options})
        self.assertEqual(complete(f"{line} -")[0], {o.name for o in options}, line)
        self.assertEqual(complete(f"{line} --he")[0], {"--help"})
        for option in options:
            self.check_option(line, option)

    def check_option(self, line, option):
        spellings = [option.name] + ([f"-{option.short}"] if option.short else [])
        for spelling in spellings:
            before = f"{line} {spelling} "
            offered, _ = complete(before + "-")
            if not option.argument or option.argument.startswith("[="):
                self.assertIn("--help", offered, f"{before}: takes no value, so options go on")
                continue
            self.assertEqual(offered, set(), f"{before}: a value is due")
            offered, told = complete(before)
            if option.choices():
                self.assertEqual(offered, option.choices(), before)
            if re.fullmatch(r"FILE|SOCKET", option.argument):
                self.assertEqual(told, {"compopt -o default"}, before)
            if option.argument.startswith("DIR") and option.name != "--path":  # of the server
                self.assertEqual(told, {"compopt -o dirnames"}, before)
            if option.choices() and spelling.startswith("--"):
                self.assertEqual(complete(f"{line} {spelling}=")[0], option.choices())

    def test_options_of_each_command(self):
        for command in self.commands:
            with self.subTest(command):
                self.check_options(f"nfs-rdma {command}", say("nfs-rdma", command, "--help"))

    def test_options_of_the_server(self):
        self.check_options("nfs-rdmad", say("nfs-rdmad", "--help"))

    def test_options_of_the_mount(self):
        usage = say("mount.nfs-rdma", "--help")
        flags = set()
        for first, second in re.findall(r"^  -(\w)(?:, -(\w))?", usage, re.M):
            flags |= {first, second} - {""}
        offered, _ = complete("mount.nfs-rdma -")
        self.assertEqual({o[1] for o in offered if not o.startswith("--")}, flags)
        long_options = set(re.findall(r"--[a-z]+", usage)) | {"--help", "--version"}
        self.assertEqual({o for o in offered if o.startswith("--")}, long_options)
        for flag in flags - {"o"}:
            self.assertEqual(complete(f"mount.nfs-rdma -{flag} -")[0], offered)

    def test_actions_of_exports(self):
        text = say("nfs-rdma", "exports", "--help").split("Options:")[0]
        actions = set(re.findall(r"^  (\w+)\b", text, re.M))
        self.assertIn("explain", actions)
        self.assertEqual(complete("nfs-rdma exports ")[0], actions)
        self.assertEqual(complete("nfs-rdma exports list ")[0], set())

    def test_checks_of_the_doctor(self):
        checks = {line.split()[0] for line in say("nfs-rdma", "doctor", "--list").splitlines()}
        self.assertEqual(complete("nfs-rdma doctor --only ")[0], checks)
        name = sorted(checks)[0]
        self.assertIn(f"{name},{name}", complete(f"nfs-rdma doctor --only {name},")[0])

    def test_operands(self):
        for command in ("ls", "cat", "cp", "stat", "ping"):
            self.assertEqual(complete(f"nfs-rdma {command} ")[1], {"compopt -o default"})
            self.assertEqual(complete(f"nfs-rdma {command} nfs://ho"), (set(), set()))
        self.assertEqual(complete("mount.nfs-rdma "), (set(), set()))
        self.assertEqual(complete("mount.nfs-rdma server:/dir ")[1], {"compopt -o dirnames"})
        self.assertEqual(complete("nfs-rdma nothing "), (set(), set()))

    def test_lists_of_mount_options(self):
        # Bash takes what is behind the last "=" for the word.
        self.assertEqual(complete("mount.nfs-rdma -o fabric=")[0], {"auto", "verbs", "iwarp"})
        self.assertEqual(complete("mount.nfs-rdma a:/b /mnt -o ro,fabric=v")[0], {"verbs"})
        self.assertEqual(complete("mount.nfs-rdma -o ro,tcpp")[0], {"ro,tcpport="})
        self.assertEqual(complete("mount.nfs-rdma -o proto=rdma,tcpp")[0], {"rdma,tcpport="})
        self.assertEqual(complete("mount.fuse.nfs-rdma -fo softe")[0], {"softerr"})


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else os.path.join(ROOT, "build/release/bin")
    os.chdir(tempfile.gettempdir())
    unittest.main()
