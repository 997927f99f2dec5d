# SPDX-License-Identifier: Apache-2.0
"""Who may do what: modes, owners, groups, set-id and sticky bits, root_squash."""
import errno
import os
import stat
import struct
import subprocess
import traceback

import sides
from bench import get, put
from case import Failed, case, expect, expect_equal, expect_error

ALICE, BOB, STAFF = 1000, 1001, 5000
NOBODY = 65534


def as_user(uid, groups, function):
    """Runs the function in a process of that user; what it raises fails the case."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(groups)
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            function()
            os._exit(0)
        except BaseException as error:  # pylint: disable=broad-exception-caught
            traceback.print_exc()
            os.write(write_end, str(error).encode()[:500])
            os._exit(1)
    os.close(write_end)
    status = os.waitpid(pid, 0)[1]
    said = os.read(read_end, 500).decode()
    os.close(read_end)
    if status != 0:
        raise Failed(f"as user {uid}: {said}")


def make(t, name, owner, mode, group=None):
    put(t.server_path(name), b"content")
    os.chown(t.server_path(name), owner, owner if group is None else group)
    os.chmod(t.server_path(name), mode)


@case("rights")
def rights(t):
    make(t, "secret", ALICE, 0o600)
    make(t, "shared", ALICE, 0o640, STAFF)
    make(t, "public", ALICE, 0o444)
    os.mkdir(t.server_path("private"))
    os.chown(t.server_path("private"), ALICE, ALICE)
    os.chmod(t.server_path("private"), 0o700)
    make(t, "private/inside", ALICE, 0o644)

    def alice():
        expect_equal(get(t.path("secret")), b"content", "her own file")
        expect_equal(get(t.path("private/inside")), b"content", "in her own directory")
        put(t.path("mine"), b"mine")
        os.chmod(t.path("mine"), 0o4711)
        expect_error(errno.EPERM, "giving a file away", os.chown, t.path("mine"), BOB, -1)
        # A file that is made read-only at once can still be written by who made it.
        made = os.open(t.path("read-only"), os.O_CREAT | os.O_WRONLY, 0o444)
        os.write(made, b"written all the same")
        os.close(made)
        expect_error(errno.EACCES, "opening 0444 for writing", os.open, t.path("read-only"), os.O_WRONLY)

    def bob():
        expect_error(errno.EACCES, "another's secret", get, t.path("secret"))
        expect_error(errno.EACCES, "a group's file from outside", get, t.path("shared"))
        expect_error(errno.EACCES, "inside another's directory", get, t.path("private/inside"))
        expect_error(errno.EACCES, "listing another's directory", os.listdir, t.path("private"))
        expect_equal(get(t.path("public")), b"content", "a public file")
        expect_error(errno.EACCES, "writing a public file", put, t.path("public"), b"x")
        expect_error(errno.EPERM, "chmod of another's file", os.chmod, t.path("public"), 0o666)
        # The directory is sticky: only owners remove.
        expect_error(errno.EPERM, "removing another's file", os.unlink, t.path("mine"))
        expect(not os.access(t.path("secret"), os.R_OK), "access() grants a secret")

    as_user(ALICE, [ALICE], alice)
    as_user(BOB, [BOB], bob)
    as_user(BOB, [BOB, STAFF], lambda: expect_equal(get(t.path("shared")), b"content", "by group"))
    mine = os.stat(t.server_path("mine"))
    expect_equal((mine.st_uid, stat.S_IMODE(mine.st_mode)), (ALICE, 0o4711), "owner and mode")
    expect_equal(get(t.server_path("read-only")), b"written all the same", "a 0444 file's content")

    # Writing by another than root takes set-id bits away.
    make(t, "set-id", ALICE, 0o6777)

    def write_set_id():
        with open(t.path("set-id"), "r+b", buffering=0) as file:
            file.write(b"changed")
    as_user(BOB, [BOB], write_set_id)
    expect_equal(stat.S_IMODE(os.stat(t.server_path("set-id")).st_mode), 0o777,
                 "mode after another's write")

    # Who may write a file may empty it: version 3 sends a time along, of which one alone is set.
    make(t, "everybodys", ALICE, 0o666)
    as_user(BOB, [BOB], lambda: put(t.path("everybodys"), b"anew"))
    expect_equal(get(t.server_path("everybodys")), b"anew", "a file that another has emptied")

    # In a set-gid directory the group is inherited.
    os.mkdir(t.server_path("team"))
    os.chown(t.server_path("team"), 0, STAFF)
    os.chmod(t.server_path("team"), 0o2777)
    as_user(ALICE, [ALICE], lambda: put(t.path("team/file"), b"x"))
    as_user(ALICE, [ALICE], lambda: os.mkdir(t.path("team/sub")))
    expect_equal(os.stat(t.server_path("team/file")).st_gid, STAFF, "group of a new file")
    sub = os.stat(t.server_path("team/sub"))
    expect_equal((sub.st_gid, bool(sub.st_mode & stat.S_ISGID)), (STAFF, True), "a new directory")


@case("root-no-squash")
def root_no_squash(t):
    make(t, "secret", ALICE, 0o600)
    expect_equal(get(t.path("secret")), b"content", "another's file, as root")
    put(t.path("made"), b"x")
    expect_equal(os.stat(t.server_path("made")).st_uid, 0, "owner of what root makes")
    os.chown(t.path("made"), BOB, STAFF)
    made = os.stat(t.server_path("made"))
    expect_equal((made.st_uid, made.st_gid), (BOB, STAFF), "owner after chown")


@case("root-squash", export="rw,root_squash,insecure")
def root_squash(t):
    make(t, "secret", ALICE, 0o600)
    make(t, "public", ALICE, 0o644)
    expect_error(errno.EACCES, "another's secret, as squashed root", get, t.path("secret"))
    expect_equal(get(t.path("public")), b"content", "a public file")
    put(t.path("made"), b"x")
    made = os.stat(t.server_path("made"))
    expect_equal((made.st_uid, made.st_gid), (NOBODY, NOBODY), "owner of what squashed root makes")
    expect_error(errno.EPERM, "chown by squashed root", os.chown, t.path("made"), BOB, -1)
    as_user(ALICE, [ALICE], lambda: expect_equal(get(t.path("secret")), b"content", "her own"))


@case("read-only", export="ro,no_root_squash,insecure")
def read_only(t):
    make(t, "file", 0, 0o666)
    expect_equal(get(t.path("file")), b"content", "a file of a read-only export")
    # A client that asks ACCESS first hears of it as a missing right.
    expect_error((errno.EROFS, errno.EACCES), "writing it", put, t.path("file"), b"x")
    expect_error(errno.EROFS, "making a file", put, t.path("new"), b"x")
    expect_error(errno.EROFS, "removing it", os.unlink, t.path("file"))
    expect_error(errno.EROFS, "making a directory", os.mkdir, t.path("dir"))


# ACLs of NFSv4 as Linux's client hands them to programs: the attribute's own XDR (RFC 8881 6.2.1).
ALLOW, DENY = 0, 1
FILE_INHERIT, DIRECTORY_INHERIT, INHERIT_ONLY, GROUP = 1, 2, 8, 0x40
READ, WRITE, EXECUTE, DELETE_CHILD = 0x1, 0x2 | 0x4, 0x20, 0x40
INHERITED = FILE_INHERIT | DIRECTORY_INHERIT


def set_acl(path, *aces):
    value = struct.pack(">I", len(aces))
    for kind, flags, mask, who in aces:
        name = who.encode()
        value += struct.pack(">IIII", kind, flags, mask, len(name)) + name + bytes(-len(name) % 4)
    os.setxattr(path, "system.nfs4_acl", value)


def get_acl(path):
    """Every ACE without what a mode does not say: attributes, ACL, SYNCHRONIZE."""
    value = os.getxattr(path, "system.nfs4_acl")
    aces, at = [], 4
    for _ in range(struct.unpack_from(">I", value)[0]):
        kind, flags, mask, size = struct.unpack_from(">IIII", value, at)
        who = value[at + 16:at + 16 + size].decode()
        aces.append((kind, flags, mask & (READ | WRITE | EXECUTE | DELETE_CHILD), who))
        at += 16 + (size + 3) // 4 * 4
    expect_equal(at, len(value), "bytes of the ACL")
    return aces


# POSIX ACLs, as getfacl and setfacl have them.
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


@case("acl")
def acl(t):
    make(t, "file", ALICE, 0o640)
    expect_equal(get_acl(t.path("file")),
                 [(ALLOW, 0, READ | WRITE, "OWNER@"), (ALLOW, 0, READ, "GROUP@"),
                  (ALLOW, 0, 0, "EVERYONE@")], "the ACL of mode 0640")

    # The owner gives it to another user and a group, and its group loses it.
    def alice():
        set_acl(t.path("file"), (ALLOW, 0, READ | WRITE, "OWNER@"), (ALLOW, 0, READ, str(BOB)),
                (DENY, GROUP, WRITE, str(STAFF)), (ALLOW, GROUP, READ | WRITE, str(STAFF)),
                (ALLOW, 0, 0, "EVERYONE@"))
    as_user(ALICE, [ALICE], alice)
    expect_equal(t.server.posix_acl(t.server_path("file")),
                 f"user::rw-,user:{BOB}:r--,group::---,group:{STAFF}:r--,mask::r--,other::---",
                 "getfacl of the file")
    expect_equal(stat.S_IMODE(os.stat(t.path("file")).st_mode), 0o640, "the mode beside it")
    expect_equal([ace for ace in get_acl(t.path("file")) if ace[3] == str(BOB)],
                 [(ALLOW, 0, READ, str(BOB))], "what the client reads of it")
    as_user(BOB, [BOB], lambda: expect_equal(get(t.path("file")), b"content", "by name"))
    as_user(BOB, [BOB], lambda: expect_error(errno.EACCES, "writing it", put, t.path("file"), b"x"))
    as_user(BOB, [BOB], lambda: expect_error(
        errno.EPERM, "another's ACL", set_acl, t.path("file"), (ALLOW, 0, READ, "EVERYONE@")))
    as_user(BOB + 1, [STAFF], lambda: expect_equal(get(t.path("file")), b"content", "by group"))
    as_user(BOB + 1, [BOB + 1], lambda: expect_error(errno.EACCES, "a stranger", get,
                                                     t.path("file")))
    os.chmod(t.path("file"), 0o600)  # takes the mask away
    as_user(BOB, [BOB], lambda: expect_error(errno.EACCES, "after chmod", get, t.path("file")))

    # What is made in a directory inherits from it, whatever the umask: from 4.2 on, where the client
    # tells it to the server and does not apply it itself (RFC 8275).
    umask = 0 if t.client.version in ("4.0", "4.1") else 0o077
    everything = READ | WRITE | EXECUTE | DELETE_CHILD
    os.mkdir(t.path("team"))
    os.chown(t.path("team"), ALICE, ALICE)
    set_acl(t.path("team"), (ALLOW, INHERITED, everything, "OWNER@"),
            (ALLOW, INHERITED, READ | EXECUTE, str(BOB)), (ALLOW, 0, EXECUTE, "EVERYONE@"),
            (ALLOW, INHERITED | INHERIT_ONLY, 0, "EVERYONE@"))
    access = f"user::rwx,user:{BOB}:r-x,group::{{}},mask::r-x,other::{{}}"
    default = ",".join("default:" + entry for entry in access.format("---", "---").split(","))
    expect_equal(t.server.posix_acl(t.server_path("team")), access.format("--x", "--x") + "," + default,
                 "getfacl of the directory")

    def make_inside():
        os.umask(umask)
        put(t.path("team/file"), b"inherited")
        os.mkdir(t.path("team/sub"))
    as_user(ALICE, [ALICE], make_inside)
    expect_equal(t.server.posix_acl(t.server_path("team/file")),
                 f"user::rw-,user:{BOB}:r-x,group::---,mask::r--,other::---", "what a file inherits")
    expect_equal(t.server.posix_acl(t.server_path("team/sub")), access.format("---", "---") + "," + default,
                 "what a directory inherits")
    as_user(BOB, [BOB], lambda: expect_equal(get(t.path("team/file")), b"inherited", "by heritage"))

    # The same ACL again changes nothing, and a refusal neither.
    before = t.server.posix_acl(t.server_path("team"))
    os.setxattr(t.path("team"), "system.nfs4_acl", os.getxattr(t.path("team"), "system.nfs4_acl"))
    expect_equal(t.server.posix_acl(t.server_path("team")), before, "the same ACL again")
    expect_error(errno.EINVAL, "an unknown user", set_acl, t.path("team"),
                 (ALLOW, 0, READ, "nobody-of-that-name@nowhere"))
    # NFS4ERR_ATTRNOTSUPP has no errno of its own in the client.
    expect_error((errno.EIO, errno.EOPNOTSUPP), "an AUDIT ACE", set_acl, t.path("team"),
                 (2, 0, READ, "EVERYONE@"))
    expect_equal(t.server.posix_acl(t.server_path("team")), before, "after refusals")

    # Many entries: the reply does not fit into one message of RPC-over-RDMA.
    users = [(ALLOW, 0, READ, str(100000 + number)) for number in range(200)]
    set_acl(t.path("file"), (ALLOW, 0, READ | WRITE, "OWNER@"), *users, (ALLOW, 0, 0, "EVERYONE@"))
    expect_equal([ace for ace in get_acl(t.path("file")) if ace[3].isdigit()], users, "a long ACL")


@case("nfsacl")
def nfsacl(t):
    """POSIX ACLs of version 3, by getfacl and setfacl, beside what the server's file system says."""
    def same(name, wanted):
        expect_equal(t.server.posix_acl(t.server_path(name)), wanted, f"getfacl of {name} on the server")
        expect_equal(sides.Folder.posix_acl(t.path(name)), wanted, f"getfacl of {name}")

    def setfacl(*arguments):
        sides.run("setfacl", *arguments)

    make(t, "file", ALICE, 0o640)
    same("file", "user::rw-,group::r--,other::---")
    expect_error(errno.ENODATA, "an ACL of a mode alone", os.getxattr, t.path("file"), ACCESS)
    expect_equal(os.listxattr(t.path("file")), [], "names of a mode alone")
    setfacl("-m", f"u:{BOB}:rw,g:{STAFF}:r,m::r", t.path("file"))
    same("file", f"user::rw-,user:{BOB}:rw-,group::r--,group:{STAFF}:r--,mask::r--,other::---")
    expect_equal(os.listxattr(t.path("file")), [ACCESS], "names")
    as_user(BOB, [BOB], lambda: expect_equal(get(t.path("file")), b"content", "by name"))
    as_user(BOB, [BOB], lambda: expect_error(errno.EACCES, "writing it", put, t.path("file"), b"x"))
    as_user(BOB + 1, [STAFF], lambda: expect_equal(get(t.path("file")), b"content", "by group"))
    as_user(BOB, [BOB], lambda: expect_error(
        errno.EPERM, "another's ACL", os.setxattr, t.path("file"), ACCESS,
        os.getxattr(t.path("file"), ACCESS)))
    # A mode that an ACL changes, and the other way round.
    setfacl("-m", "m::rwx", t.path("file"))
    expect_equal(stat.S_IMODE(os.stat(t.path("file")).st_mode), 0o670, "the mode beside it")
    os.chmod(t.path("file"), 0o610)
    as_user(BOB, [BOB], lambda: expect_error(errno.EACCES, "after chmod", get, t.path("file")))
    same("file", f"user::rw-,user:{BOB}:rw-,group::r--,group:{STAFF}:r--,mask::--x,other::---")
    # What is left is the mode, in which the mask was the group's.
    os.removexattr(t.path("file"), ACCESS)
    same("file", "user::rw-,group::--x,other::---")

    # The two of a directory are set one by one, and are one call.
    os.mkdir(t.path("team"), 0o755)
    os.chown(t.path("team"), ALICE, ALICE)
    setfacl("-m", f"u:{BOB}:rwx", t.path("team"))
    setfacl("-d", "-m", f"u::rwx,u:{BOB}:rwx,g::rx,o::-", t.path("team"))
    access = f"user::rwx,user:{BOB}:rwx,group::r-x,mask::rwx,other::r-x"
    default = f"default:user::rwx,default:user:{BOB}:rwx,default:group::r-x,default:mask::rwx,default:other::---"
    same("team", f"{access},{default}")
    expect_equal(sorted(os.listxattr(t.path("team"))), [ACCESS, DEFAULT], "names of a directory")

    def make_inside():
        os.umask(0o077)
        put(t.path("team/file"), b"inherited")
        os.close(os.open(t.path("team/exclusive"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640))
        os.mkfifo(t.path("team/pipe"), 0o666)
        os.mkdir(t.path("team/sub"))
    as_user(ALICE, [ALICE], make_inside)
    inherited = "user::rw-,user:{}:rwx,group::r-x,mask::{},other::---"
    same("team/file", inherited.format(BOB, "rw-"))
    same("team/exclusive", inherited.format(BOB, "r--"))
    same("team/pipe", inherited.format(BOB, "rw-"))
    same("team/sub", f"user::rwx,user:{BOB}:rwx,group::r-x,mask::rwx,other::---,{default}")
    as_user(BOB, [BOB], lambda: put(t.path("team/file"), b"by heritage"))
    setfacl("-m", f"u:{BOB}:x", t.path("team"))
    access = f"user::rwx,user:{BOB}:--x,group::r-x,mask::r-x,other::r-x"
    same("team", f"{access},{default}")
    setfacl("-k", t.path("team"))
    same("team", access)
    os.removexattr(t.path("team"), DEFAULT)  # is not there, which is no error of POSIX ACLs

    def make_outside():
        os.umask(0o027)
        put(t.path("team/masked"), b"content")
        os.mkdir(t.path("team/dark"))
    as_user(ALICE, [ALICE], make_outside)
    same("team/masked", "user::rw-,group::r--,other::---")
    same("team/dark", "user::rwx,group::r-x,other::---")

    # What is set on the server is seen by a client that has nothing cached.
    t.server.set_posix_acl(t.server_path("team/masked"), "-m", f"u:{BOB}:rw")
    t.remount()
    same("team/masked", f"user::rw-,user:{BOB}:rw-,group::r--,mask::rw-,other::---")

    # Many entries: neither call nor reply fit into one message of RPC-over-RDMA. Linux 6.1 as server
    # fails a SETACL of that length with EIO.
    numbers = range(100000, 100100 if isinstance(t.server, sides.Knfsd) else 100450)
    os.chmod(t.path("file"), 0o600)
    setfacl("-m", ",".join(f"u:{number}:r" for number in numbers), t.path("file"))
    users = ",".join(f"user:{number}:r--" for number in numbers)
    same("file", f"user::rw-,{users},group::---,mask::r--,other::---")
