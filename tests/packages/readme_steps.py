# SPDX-License-Identifier: Apache-2.0
"""What README.md tells a new user to type, typed: in a guest with nothing of ours but the packages beside it.

  readme_steps.py README.md [--list]      in the guest; --list says what would be run, anywhere

Each line of an indented block is a command, with "$" a user's and with "#" (or without either, in a block that has no
such line) root's; what stands below it is what it says. Each has to succeed and to say that, in that order, whatever
the figures are. ELSEWHERE has what is not typed here, with the reason: a command that it does not have is typed.
"""
import fnmatch
import os
import re
import select
import subprocess
import sys
import time

ELSEWHERE = (
    ("scripts/quickstart", "builds on a machine with sources: .ci/run"),
    ("scripts/test", "builds on a machine with sources: .ci/run"),
    ("scripts/install-deps *", "installs what building needs: .ci/run"),
    ("dpkg-buildpackage *", "packages.sh --only build, which made these packages"),
    ("cmake *", "the way without packages: lab_service.sh has what cmake --install makes"),
    ("nfs-rdmad --check-config", "the way without packages"),
    ("systemctl daemon-reload", "the way without packages"),
    ("systemctl enable --now nfs-rdma", "the way without packages; lab_service_steps.sh: step_enabled"),
)
# Of the way without packages: what the other way has already done.
ONCE = ("mkdir -p /srv/data", "echo '/srv/data *")

# The table of "As a service": what has to stand in it, what is typed for it, and what that says.
TABLE = (
    ("`systemctl reload nfs-rdma`", "systemctl reload nfs-rdma", ""),
    ("`nfs-rdma reload`", "nfs-rdma reload", "nothing changed"),
    ("`nfs-rdma exports`", "nfs-rdma exports", "/srv/data"),
    ("`nfs-rdma exports`", "nfs-rdma exports explain 192.0.2.7 /srv/data", "192.0.2.0/24"),
    ("`nfs-rdma top`", "nfs-rdma top --interval 0.5 --count 2", "READ"),
    ("`status`", "nfs-rdma status", "RDMA Write"),
    ("`clients`", "nfs-rdma clients", "127.0.0.1"),
    ("`locks`", "nfs-rdma locks --opens", "big.bin"),
    ("`nfs-rdma trace`", "nfs-rdma trace --count 3", "GETATTR|READ|COMPOUND|SEQUENCE"),
    ("`--slower-than 10`", "timeout --preserve-status -s INT 2 nfs-rdma trace --slower-than 10", ""),
    ("`nfs-rdma capture FILE`", "nfs-rdma capture --seconds 3 /tmp/capture && test -s /tmp/capture", ""),
    ("`nfs-rdma doctor [SERVER]`", "nfs-rdma doctor", ""),
    ("`nfs-rdma doctor [SERVER]`", "nfs-rdma doctor 127.0.0.1:/srv/data", ""),
    ("`nfs-rdma release PATH`", "nfs-rdma release /srv/data/big.bin", "was revoked"),
    ("`nfs-rdma evict CLIENT`", "nfs-rdma evict 127.0.0.1", ""),
)


class Failed(Exception):
    pass


class Command:
    def __init__(self, line, section, who, text):
        self.line, self.section, self.who, self.text = line, section, who, text
        self.says = []

    def elsewhere(self):
        for pattern, why in ELSEWHERE:
            if fnmatch.fnmatchcase(self.text.split("    #")[0].rstrip(), pattern):
                return why
        return None


def commands_of(path):
    """Of the README, in its order."""
    with open(path, encoding="utf-8") as readme:
        lines = readme.read().split("\n")
    section, blocks, block = "", [], None
    for number, line in enumerate(lines, 1):
        if line.startswith("## "):
            section = line[3:]
        if line.startswith("    ") and not (block is None and lines[number - 2].startswith(("* ", "  "))):
            if block is None:
                block = []
                blocks.append((section, block))
            block.append((number, line[4:]))
        else:
            block = None
    found = []
    for section, block in blocks:
        prompts = any(text.startswith(("$ ", "# ")) for _, text in block)
        before = None
        for number, text in block:
            if before is not None and before.text.endswith("\\"):
                before.text = before.text[:-1] + " " + text.strip()
            elif text.startswith(("$ ", "# ")) or not prompts:
                who = "user" if text.startswith("$ ") else "root"
                before = Command(number, section, who, text[2:] if prompts else text)
                found.append(before)
            else:
                before.says.append(text)
    return found


def pattern_of(line):
    """Figures, units, and what an ellipsis stands for may differ."""
    line = re.escape(" ".join(line.split()))
    line = line.replace(re.escape("..."), ".*")
    line = re.sub(r"(\d+((\\\.|,)\d+)*)(\\ (B|KiB|MiB|GiB)\b)?",
                  lambda m: r"[\d.,]+" + (r"\ (B|KiB|MiB|GiB)" if m.group(4) else ""), line)
    return re.compile(line)


class Shell:
    """bash of root or of a user; commands share its variables, as they do when typed."""

    def __init__(self, *command, folder):
        self.process = subprocess.Popen([*command, "bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, cwd=folder)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.number = 0

    def until(self, wanted, limit):
        """What it says until `wanted` has come."""
        end, said = time.monotonic() + limit, ""
        while not re.search(wanted, said):
            left = end - time.monotonic()
            if left <= 0:
                raise Failed(f"nothing more after {limit} s:\n{said}")
            select.select([self.process.stdout], [], [], left)
            part = self.process.stdout.read()
            if part == b"":
                raise Failed(f"the shell ended:\n{said}")
            said += (part or b"").decode(errors="replace")
        return said

    def type(self, text, limit=120):
        self.number += 1
        mark = f"typed {self.number}: status "
        self.process.stdin.write(f"{text}\necho; echo '{mark}'$?\n".encode())
        self.process.stdin.flush()
        said = self.until(re.escape(mark) + r"\d+\n", limit)
        said, status = said.rsplit(mark, 1)
        if int(status) != 0:
            raise Failed(f"status {int(status)}:\n{said}")
        return said

    def start(self, text, ready):
        """One that stays in the foreground: in the background, until it says that."""
        self.process.stdin.write(f"{text} &\n".encode())
        self.process.stdin.flush()
        return self.until(ready, 30)


def check_said(command, said):
    rest = [" ".join(line.split()) for line in said.split("\n")]
    for line in command.says:
        wanted = pattern_of(line)
        while rest and not wanted.fullmatch(rest[0]):
            rest.pop(0)
        if not rest:
            raise Failed(f"it does not say {line!r}, but:\n{said}")
        rest.pop(0)


def check_mount(command):
    """A mount of Linux's client: by what it is meant to be."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        line = next((line for line in mounts if line.split()[1] == "/mnt"), "nothing")
    words = line.replace(" ", ",").split(",")
    for wanted in ("nfs" if "vers=3" in command.text else "nfs4",
                   "vers=3" if "vers=3" in command.text else "vers=4.2",
                   "proto=tcp" if " proto=tcp" in command.text else "proto=rdma"):
        if wanted not in words:
            raise Failed(f"mounted without {wanted}: {line}")


class Guest:
    def __init__(self):
        self.root = Shell(folder="/root/nfs-rdma")
        self.user = Shell("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", folder="/tmp")

    def run(self, command):
        shell = self.user if command.who == "user" else self.root
        if " --foreground " in command.text:
            check_said(command, shell.start(command.text, r"(?m)^ready .*\n"))
            return
        said = shell.type(command.text)
        check_said(command, said)
        if command.section.startswith("Linux's own client") and "mount -t nfs " in command.text:
            check_mount(command)
            self.root.type("timeout 60 cmp /mnt/big.bin /srv/data/big.bin")
            # The next one is another way to say it, not a second mount.
            self.root.type("umount /mnt")

    def table(self, readme):
        """With a mount of the service's, by which somebody reads, as an administrator would have."""
        with open(readme, encoding="utf-8") as text:
            section = text.read().split("\n## As a service\n")[1].split("\n## ")[0]
        self.root.type("mount -t nfs-rdma 127.0.0.1:/srv/data /mnt")
        self.root.type("(while sleep 0.2; do stat /mnt/rdma; head -c 4096; done >/dev/null 2>&1 </mnt/big.bin) & reader=$!")
        for named, text, wanted in TABLE:
            print(f"    # {text}", flush=True)
            if named not in section:
                raise Failed(f"the README's table does not have {named}")
            said = self.root.type(text)
            if not re.search(wanted, said):
                raise Failed(f"it does not say {wanted!r}, but:\n{said}")
        self.root.type("kill $reader; umount /mnt", limit=60)


def prepare():
    """A user, and a network card whose other end is this machine: both are there where people try it."""
    folder = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(["bash", "-euc", f"""
        getent passwd 1000 >/dev/null || echo 'guest:x:1000:1000:guest:/tmp:/bin/bash' >>/etc/passwd
        mkfs.ext4 -q /dev/vdb
        mount /dev/vdb /srv
        ip link set eth0 down 2>/dev/null && ip link set eth0 name slow0 || :
        rig wire none
        ip link property add dev vc altname eth0
        echo '192.0.2.2 SERVER' >>/etc/hosts
        printf 'APT::Sandbox::User "root";\\nAPT::Get::Assume-Yes "true";\\nDpkg::Use-Pty "0";\\n' >/etc/apt/apt.conf.d/99readme
        rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
        echo 'deb [trusted=yes] file:{folder}/debs ./' >/etc/apt/sources.list
        mkdir -p /root/nfs-rdma
        cp {folder}/now/*.deb /root/
        """], check=True, env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"))
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    subprocess.run(["apt-get", "-q", "update"], check=True, stdout=subprocess.DEVNULL)


def main():
    readme = sys.argv[1]
    commands = commands_of(readme)
    only_list = sys.argv[2:] == ["--list"]
    guest, typed, seen = None, 0, set()
    if not only_list:
        prepare()
        guest = Guest()
    for command in commands:
        why = command.elsewhere()
        if why is None and command.text in seen and any(fnmatch.fnmatchcase(command.text, once) for once in ONCE):
            why = "typed above"
        seen.add(command.text)
        print(f"{command.line:4} {'$' if command.who == 'user' else '#'} {command.text}"
              + (f"\n     not here: {why}" if why else ""), flush=True)
        if why is not None or only_list:
            continue
        try:
            guest.run(command)
        except Failed as failure:
            print(f"FAILED README.md:{command.line} ({command.section}): {failure}")
            return 1
        typed += 1
    if only_list:
        return 0
    try:
        guest.table(readme)
    except Failed as failure:
        print(f"FAILED README.md, As a service: {failure}")
        return 1
    print(f"ok: {typed} commands of README.md and {len(TABLE)} of its table")
    return 0


if __name__ == "__main__":
    sys.exit(main())
