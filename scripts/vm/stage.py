# SPDX-License-Identifier: Apache-2.0
"""What the Python scripts that use the lab share: the folder that the guest sees, and its end."""
import os
import shutil
import signal
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LAB = os.path.join(os.environ.get("LAB", os.path.join(ROOT, "scripts", "vm")), "lab")
# The guest runs the same Debian release: libc, the loader and rdma-core, whose providers are
# plug-ins that must fit, are its own.
GUEST_LIBRARIES = ("libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "ld-linux", "libibverbs",
                   "librdmacm")


def image_info():
    done = subprocess.run([LAB, "info"], capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()


def prepare():
    """Makes the guest's image when it is not there; False when that cannot be."""
    return subprocess.run([LAB, "prepare"], stdout=2, check=False).returncode == 0


def libraries_of(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        words = line.split()
        if len(words) > 2 and words[1] == "=>" and words[2].startswith("/"):
            if not os.path.basename(words[2]).startswith(GUEST_LIBRARIES):
                yield words[2]


def make_stage(programs, folders=(), strip=True):
    """A folder that becomes /host in the guest: programs in bin, their libraries in bin/lib, and
    copies of `folders`. Without symbols, unless they are wanted: reading 30 MB through the shared
    folder takes seconds."""
    stage = tempfile.mkdtemp(prefix="nfs-rdma-lab.")
    os.makedirs(f"{stage}/bin/lib")
    for folder in folders:
        shutil.copytree(folder, f"{stage}/{os.path.basename(folder)}",
                        ignore=shutil.ignore_patterns("__pycache__"))
    for program in programs:
        target = f"{stage}/bin/{os.path.basename(program)}"
        subprocess.run(["strip", *([] if strip else ["-g"]), "-o", target, program], check=True)
        for library in libraries_of(program):
            shutil.copy(library, f"{stage}/bin/lib/")
    return stage


def add_trees(stage, trees):
    """Files and folders of this machine, for the guest to have in the same place (`root` in the
    stage), and what their programs are linked with beside that of the others."""
    for tree in trees:
        target = f"{stage}/root{tree}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(tree) and not os.path.islink(tree):
            shutil.copytree(tree, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(tree, target, follow_symlinks=False)
    for folder, _, names in os.walk(f"{stage}/root"):
        for path in (os.path.join(folder, name) for name in names if ".so" not in name):
            if not os.path.islink(path) and os.access(path, os.X_OK) and is_program(path):
                for library in libraries_of(path):
                    shutil.copy(library, f"{stage}/bin/lib/")


def is_program(path):
    with open(path, "rb") as source:
        return source.read(4) == b"\x7fELF"


def stop(guest):
    """lab ends its QEMU when it is told to, and QEMU ends with lab in any case."""
    if guest.poll() is None:
        guest.send_signal(signal.SIGTERM)
        try:
            guest.wait(20)
        except subprocess.TimeoutExpired:
            guest.kill()
            guest.wait()
