# SPDX-License-Identifier: Apache-2.0
"""Names: links, long and odd names, renaming directories, large directories."""
import errno
import os
import stat

from bench import get, put
from case import case, expect, expect_equal, expect_error


@case("links")
def links(t):
    put(t.path("file"), b"content")
    os.link(t.path("file"), t.path("hard"))
    expect_equal(os.stat(t.path("file")).st_nlink, 2, "links")
    expect_equal(os.stat(t.server_path("hard")).st_ino, os.stat(t.server_path("file")).st_ino,
                 "inode of the hard link on the server")
    expect_equal(os.stat(t.path("hard")).st_ino, os.stat(t.path("file")).st_ino,
                 "inode of the hard link at the client")
    os.unlink(t.path("file"))
    expect_equal(get(t.path("hard")), b"content", "content behind the other name")
    expect_equal(os.stat(t.path("hard")).st_nlink, 1, "links after one was removed")

    # 4095 is the longest target that Linux takes; ext4 keeps the short ones in the inode.
    for length in (1, 59, 60, 255, 1023, 1024, 4000, 4095):
        target = ("t/" * length)[:length]
        os.symlink(target, t.path(f"to-{length}"))
        expect_equal(os.readlink(t.server_path(f"to-{length}")), target, f"target of {length}")
        os.symlink(target, t.server_path(f"from-{length}"))
        expect_equal(os.readlink(t.path(f"from-{length}")), target, f"target of {length} read")
    t.remount()
    for length in (1, 255, 4095):
        expect_equal(len(os.readlink(t.path(f"to-{length}"))), length, "length of a target")
        expect(stat.S_ISLNK(os.lstat(t.path(f"to-{length}")).st_mode), "not a symbolic link")
    os.symlink("hard", t.path("works"))
    expect_equal(get(t.path("works")), b"content", "content through a symbolic link")


ODD_NAMES = (
    b"a" * 255, "ä" * 127 + "a", "\N{GRINNING FACE}" * 63, "e\u0301", "\u00e9", " ", "-rf", "\\", "a\nb",
    "tab\there", "\u202eright-to-left", "\u200b", "*?[", "'\"$`", b"\xff\xfe\x80", b"\xed\xa0\x80",
    b"\xc0\xaf", ".hidden", "...", "trailing ", "CON", "a:b",
)


@case("odd-names")
def odd_names(t):
    names = [os.fsencode(name) for name in ODD_NAMES]
    for number, name in enumerate(names):
        put(t.path(name), b"%d" % number)
    expect_equal(sorted(os.listdir(os.fsencode(t.here))), sorted(names), "names on the server")
    t.remount()
    expect_equal(sorted(os.listdir(os.fsencode(t.there))), sorted(names), "names at the client")
    for number, name in enumerate(names):
        expect_equal(get(t.path(name)), b"%d" % number, f"content of {name!r}")
    os.mkdir(t.path("moved"))
    for name in names:
        os.rename(t.path(name), t.path(b"moved/" + name))
    for name in names:
        os.unlink(t.path(b"moved/" + name))
    os.rmdir(t.path("moved"))
    expect_error(errno.ENAMETOOLONG, "a name of 256 bytes", put, t.path("a" * 256), b"")
    expect_error(errno.ENOENT, "a missing name", os.stat, t.path("missing"))


@case("renames")
def renames(t):
    os.makedirs(t.path("a/b/c"))
    put(t.path("a/b/c/file"), b"x")
    os.rename(t.path("a/b"), t.path("moved"))
    expect_equal(get(t.path("moved/c/file")), b"x", "file in a moved directory")
    expect_equal(os.listdir(t.server_path("a")), [], "names where it was")
    os.mkdir(t.path("empty"))
    os.rename(t.path("moved/c"), t.path("empty"))
    expect_equal(os.listdir(t.server_path("empty")), ["file"], "directory renamed over an empty one")
    expect_error(errno.ENOTEMPTY, "rmdir of a full directory", os.rmdir, t.path("empty"))
    os.mkdir(t.path("other"))
    expect_error(errno.ENOTEMPTY, "rename over a full directory", os.rename, t.path("other"),
                 t.path("empty"))
    expect_error(errno.EINVAL, "a directory into itself", os.rename, t.path("other"),
                 t.path("other/inside"))
    expect_error(errno.ENOTDIR, "a directory over a file", os.rename, t.path("other"),
                 t.path("empty/file"))
    expect_error(errno.EISDIR, "a file over a directory", os.rename, t.path("empty/file"),
                 t.path("other"))
    os.mkfifo(t.path("pipe"))
    expect(stat.S_ISFIFO(os.stat(t.server_path("pipe")).st_mode), "no FIFO on the server")


MANY = 10_000


@case("big-directory", limit=900)
def big_directory(t):
    wanted = [f"an-entry-of-a-large-directory-{number:05}" for number in range(MANY)]
    # Half are made by the client, half are there before.
    t.server.make_files(t.here, wanted[::2])
    for name in wanted[1::2]:
        os.close(os.open(t.path(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640))
    expect_equal(len(os.listdir(t.here)), MANY, "names on the server")
    expect_equal(sorted(os.listdir(t.there)), wanted, "names at the client")
    t.remount()
    with os.scandir(t.there) as entries:
        modes = {entry.name: entry.stat().st_mode & 0o777 for entry in entries}
    expect_equal(sorted(modes), wanted, "names after a new mount")
    expect_equal([modes[name] for name in wanted], [0o644, 0o640] * (MANY // 2), "modes")
    # Removing while reading, as rm -r does, must not skip or repeat.
    seen = 0
    with os.scandir(t.there) as entries:
        for entry in entries:
            seen += 1
            if seen % 10 == 0:
                os.unlink(entry.path)
    expect_equal(seen, MANY, "entries seen while every tenth was removed")
    expect_equal(len(os.listdir(t.here)), MANY - MANY // 10, "names left on the server")
    expect_equal(len(os.listdir(t.there)), MANY - MANY // 10, "names left at the client")
