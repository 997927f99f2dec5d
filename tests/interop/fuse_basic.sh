#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The FUSE mount against our own server on loopback: copies, names, open files that are removed,
# holes, mappings, permissions of ordinary users, and a server that is killed while data is written.
#
#   fuse_basic.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root and /dev/fuse
# shellcheck disable=SC2016,SC2086  # check() evaluates its commands; pids are one word
set -u

# shellcheck source=fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

work=$(mktemp -d /tmp/nfs-rdma-fuse.XXXXXX)
chmod 755 "$work"
mnt=$work/mnt
mnt2=$work/mnt2
here=$(cd "$(dirname "$0")" && pwd)
# In memory where possible: every change of a name is fsynced there, and the rules are the same.
export_dir=$work/export
[ -w /dev/shm ] && export_dir=$(mktemp -d /dev/shm/nfs-rdma-fuse.XXXXXX) && chmod 755 "$export_dir"
mkdir -p "$export_dir" "$mnt" "$mnt2" "$work/state"
install -m 755 "$here/fuse_posix.py" "$work/"
failures=0

mount_it() {  # mount_it [OPTIONS [DIR]]
  mount_on "${2:-$mnt}" "${1:-}"
}
unmount_it() {
  for _ in $(seq 50); do
    umount "$mnt" 2>/dev/null && return
    sleep 0.1
  done
  echo "cannot unmount"; exit 1
}
clean_up() {
  umount -l "$mnt" 2>/dev/null
  umount -l "$mnt2" 2>/dev/null
  [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null && wait "$server_pid" 2>/dev/null
  rm -rf "$work" "$export_dir"
}
trap clean_up EXIT

check() {  # check NAME COMMAND...: runs it in a shell of its own, in the mount
  local name=$1
  shift
  if (cd "$mnt" && timeout 600 bash -euc "$*") >"$work/out" 2>&1; then
    echo "ok   $name"
  else
    echo "FAIL $name (exit $?)"
    sed 's/^/     /' "$work/out" | tail -n 15
    failures=$((failures + 1))
  fi
}
# In a check: COMMAND must fail. (`set -e` lets "! COMMAND" pass whatever it does.)
refused() {
  if "$@" >/dev/null 2>&1; then echo "not refused: $*"; return 1; fi
}
export -f refused
as_user() { echo "setpriv --reuid 1000 --regid 1000 --clear-groups --"; }

export export_dir mnt mnt2 work bin mount_by
user="$(as_user)"
export user
start_server
mount_it

check "a regular file is no place to mount" '
  touch plain
  status=0
  "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir/plain" "$mnt2" -o "$mount_by,retry=0" 2>"$work/err" || status=$?
  [ "$status" = 32 ] && grep "is not a directory" "$work/err"'
check "copy /usr/include in" 'cp -a /usr/include include'
check "the copy is the original" 'diff -r --no-dereference /usr/include include'
check "times and modes are kept" '
  list() { (cd "$1" && find . -printf "%p %m %u %g %T@ %s %l\n" | grep -v "^./ \|^\. " |
            sed "s/^\(\S* \S* \S* \S* \S* \)[0-9]* \(.*\)/\1\2/" | sort); }
  diff <(list /usr/include) <(list include) | head'
check "hard links share an inode" '
  echo a > l1; ln l1 l2; [ "$(stat -c %i l1)" = "$(stat -c %i l2)" ]; [ "$(stat -c %h l1)" = 2 ]
  rm l1; [ "$(stat -c %h l2)" = 1 ]; [ "$(cat l2)" = a ]'
check "symbolic links" 'ln -s include/stdio.h s; cmp s /usr/include/stdio.h; [ "$(readlink s)" = include/stdio.h ]'
check "fifo and device nodes" 'mkfifo p; [ -p p ]; mknod n c 1 3; [ "$(stat -c %t,%T n)" = 1,3 ]; rm p n'
check "the block size of files is that of a WRITE, of directories a page" '
  echo a > blocks; [ "$(stat -c %o blocks)" -ge 65536 ]; [ "$(stat -c %o .)" = 4096 ]
  truncate -s 5 blocks; truncate -s 100000 blocks; [ "$(stat -c %s blocks)" = 100000 ]
  [ "$(head -c 5 blocks | od -An -tx1)" = " 61 0a 00 00 00" ]; [ "$(tr -d "\000" <blocks)" = a ]; rm blocks'
check "rename over an open file" '
  echo old > r1; echo new > r2; exec 5<r1; mv r2 r1; [ "$(cat r1)" = new ]; [ "$(cat <&5)" = old ]
  exec 5<&-; sleep 0.2; [ -z "$(ls -A | grep "^.nfs" || true)" ]'
check "unlink of an open file" '
  exec 5<>u; echo data >&5; rm u; [ ! -e u ]; echo more >&5; [ "$(cat /proc/self/fd/5)" = "data
more" ]; exec 5>&-; sleep 0.2; [ -z "$(ls -A | grep "^.nfs" || true)" ]'
check "rm -r with a file just closed" '
  mkdir d; exec 5<>d/f; rm d/f; exec 5>&-; rmdir d'
# What the mount has sent and received so far, in bytes
moved() {
    "$bin/nfs-rdma" status --mount "$mnt" --json | python3 -c '
import json, sys
totals = json.load(sys.stdin)["totals"]
print(sum(totals[name] for name in totals if name.endswith("_bytes")))'
}
export -f moved

check "random reads take little more than they ask for" '
  head -c 200M /dev/urandom > "$export_dir/rr"; before=$(moved)
  python3 -c "
import os, random
f = os.open(\"rr\", os.O_RDONLY)
for _ in range(200): os.pread(f, 4096, random.randrange(0, 200 << 20, 4096))"
  after=$(moved); [ $((after - before)) -lt $((200 * 16384)) ]; rm rr'
check "append" 'for i in $(seq 200); do echo $i >> app; done; diff app <(seq 200); cmp app "$export_dir/app"'
check "truncate" '
  seq 10000 > t; truncate -s 100 t; [ "$(stat -c %s t)" = 100 ]; truncate -s 5000 t
  cmp t <(seq 10000 | head -c 100; head -c 4900 /dev/zero); : > t; [ ! -s t ]'
check "holes" '
  echo end | dd of=h bs=1M seek=100 conv=notrunc status=none; [ "$(stat -c %s h)" = 104857604 ]
  head -c 1000 h | cmp - <(head -c 1000 /dev/zero); [ "$(tail -c 4 h)" = end ]
  [ "$(stat -c %b "$export_dir/h")" -lt 1000 ]'
if [[ ,$mount_by, == *,vers=4.2,* ]]; then
  check "holes are found, and space is taken and freed" '
    head -c 4M /dev/urandom > '"$work"'/space; cp '"$work"'/space s4; fallocate -p -o 1M -l 1M s4
    dd if=/dev/zero of='"$work"'/space bs=1M seek=1 count=1 conv=notrunc status=none
    cmp s4 '"$work"'/space; [ "$(stat -c %b "$export_dir/s4")" = $((3 * 2048)) ]
    fallocate -l 1M s5; [ "$(stat -c %s,%b s5)" = 1048576,2048 ]; refused fallocate -n -l 2M s5
    python3 - <<PY
import errno, os
f = os.open("s4", os.O_RDWR)
assert os.lseek(f, 0, os.SEEK_HOLE) == 1 << 20
assert os.lseek(f, 1 << 20, os.SEEK_DATA) == 2 << 20
assert os.lseek(f, 2 << 20, os.SEEK_HOLE) == 4 << 20
os.pwrite(f, b"x", 8 << 20)  # not yet with the server
assert os.lseek(f, 4 << 20, os.SEEK_DATA) == 8 << 20
try: os.lseek(f, (8 << 20) + 1, os.SEEK_DATA)
except OSError as error: assert error.errno == errno.ENXIO
else: raise SystemExit("data behind the end")
PY'
  check "copies are made by the server" '
    head -c 100M /dev/urandom > "$export_dir/from"
    before=$(moved); cp from to; after=$(moved); cmp from "$export_dir/to"
    [ $((after - before)) -lt 1000000 ]
    echo written > w; cp w w2; echo longer >> w; cp w w2; cmp w w2; rm from to'
else
  check "without version 4.2, copies and holes are made the long way" '
    seq 100000 > c; cp c c2; cmp c "$export_dir/c2"; refused fallocate -p -l 4096 c; cmp c c2
    python3 -c "
import os
f = os.open(\"c\", os.O_RDONLY); size = os.fstat(f).st_size
assert os.lseek(f, 5, os.SEEK_DATA) == 5 and os.lseek(f, 5, os.SEEK_HOLE) == size"'
fi
check "read behind own write without a flush" '
  python3 - <<PY
import os
f = os.open("rw", os.O_RDWR | os.O_CREAT)
for i in range(300):
    os.pwrite(f, b"x%05d" % i, i * 4001)
    assert os.pread(f, 6, i * 4001) == b"x%05d" % i
    assert os.pread(f, 10, 0)[:6] == b"x00000"
assert os.fstat(f).st_size == 299 * 4001 + 6
PY'
check "what others wrote is seen, also when they set its time back" '
  echo one > others; cat others > /dev/null; cat others > /dev/null; time=$(stat -c %y others)
  echo two > "$export_dir/others"; touch -d "$time" "$export_dir/others"; [ "$(cat others)" = two ]'
check "10,000 entries" '
  mkdir many; (cd many; seq 10000 | xargs touch); [ "$(ls many | wc -l)" = 10000 ]
  [ "$(ls -l many | tail -n +2 | awk "{print \$NF}" | sort -n | cksum)" = "$(seq 10000 | cksum)" ]
  rm -r many'
check "mapping" '
  python3 - <<PY
import mmap, os
f = os.open("m", os.O_RDWR | os.O_CREAT)
os.ftruncate(f, 1 << 20)
m = mmap.mmap(f, 1 << 20)
for i in range(0, 1 << 20, 4096): m[i:i + 8] = b"%08d" % i
m.flush(); m.close(); os.close(f)
data = open(os.environ["export_dir"] + "/m", "rb").read()
assert all(data[i:i + 8] == b"%08d" % i for i in range(0, 1 << 20, 4096))
PY'
check "O_DIRECT" '
  dd if=/dev/urandom of='"$work"'/rnd bs=1M count=8 status=none
  dd if='"$work"'/rnd of=o bs=1M oflag=direct status=none; cmp o "$export_dir/o"
  dd if=o of='"$work"'/back bs=1M iflag=direct status=none; cmp '"$work"'/back '"$work"'/rnd'
check "O_EXCL" '
  python3 - <<PY
import os
os.close(os.open("x", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o640))
assert os.stat("x").st_mode & 0o7777 == 0o640, oct(os.stat("x").st_mode)
try: os.open("x", os.O_CREAT | os.O_EXCL)
except FileExistsError: pass
else: raise SystemExit("second O_EXCL worked")
PY'
check "locks work" 'flock lockfile -c true; python3 -c "
import fcntl; f=open(\"lockfile\",\"w\"); fcntl.lockf(f, fcntl.LOCK_EX)"'
check "statfs" 'df . | tail -1; [ "$(stat -f -c %b .)" -gt 0 ]'
check "long names are refused" 'refused touch "$(head -c 300 /dev/zero | tr "\0" a)"'
if [[ ,$mount_by, != *,vers=4.2,* ]]; then
  check "extended attributes are refused" '
    refused python3 -c "import os; os.setxattr(\"l2\", \"user.a\", b\"b\")"'
elif python3 -c "import os; os.setxattr('$export_dir', 'user.nfs-rdma.probe', b'')" 2>/dev/null; then
  check "extended attributes" '
    python3 - <<PY
import errno, os
export = os.environ["export_dir"] + "/"
os.mkdir("xd"); open("xf", "w").close()
for name in "xf", "xd":
    os.setxattr(name, "user.a", b"b"); os.setxattr(name, "user.long", b"v" * 20_000)
    assert os.getxattr(export + name, "user.a") == b"b"
    assert os.getxattr(name, "user.long") == os.getxattr(export + name, "user.long") == b"v" * 20_000
    assert sorted(os.listxattr(export + name)) == ["user.a", "user.long"]
    assert sorted(os.listxattr(name)) == ["system.nfs4_acl", "user.a", "user.long"]
    for number, function, *arguments in (
            (errno.EEXIST, os.setxattr, "user.a", b"c", os.XATTR_CREATE),
            (errno.ENODATA, os.setxattr, "user.b", b"c", os.XATTR_REPLACE),
            (errno.ENODATA, os.getxattr, "user.b"), (errno.ENODATA, os.removexattr, "user.b"),
            (errno.EOPNOTSUPP, os.getxattr, "security.capability"),
            (errno.EOPNOTSUPP, os.setxattr, "trusted.a", b"c")):
        try: function(name, *arguments)
        except OSError as error: assert error.errno == number, (function, arguments, error)
        else: raise SystemExit(f"{function} {arguments} worked")
    os.removexattr(name, "user.a")
    assert os.listxattr(export + name) == ["user.long"]
os.symlink("xf", "xl")
assert os.listxattr("xl") == ["system.nfs4_acl", "user.long"]
# Linux says so, too, where a file system has ACLs.
assert os.listxattr("xl", follow_symlinks=False) == ["system.nfs4_acl"]
PY'
else
  echo "left out: extended attributes, which $export_dir has none of"
fi
check "a git repository" '
  git -c init.defaultBranch=main init -q g; cd g; cp -r /usr/include/linux .; git add .
  git -c user.name=a -c user.email=a@b commit -qm one; git fsck; git status --porcelain | wc -l | grep -qx 0'
if command -v sqlite3 >/dev/null; then
  check "a SQLite database" '
    { echo "create table t(a);"; for i in $(seq 300); do echo "insert into t values($i);"; done
      echo "pragma integrity_check; select sum(a) from t;"; } | sqlite3 db | tr "\n" " " |
      grep -qx "ok 45150 "'
fi

# Ordinary users.
check "user: a private directory stays private" '
  mkdir -m 700 private; echo secret > private/f; cat private/f; ls private
  refused $user cat private/f; refused $user ls private; refused $user stat private/f'
check "user: a private file stays private" '
  echo secret > pf; chmod 600 pf; cat pf; refused $user cat pf; [ "$($user stat -c %a pf)" = 600 ]'
check "user: access(2)" '$user test ! -r pf; test -r pf; $user test -r include/stdio.h; $user test ! -w include'
check "user: own files" '
  mkdir -m 777 home; $user cp -r /usr/include/asm-generic home/; $user diff -r /usr/include/asm-generic home/asm-generic
  [ "$(stat -c %u home/asm-generic)" = 1000 ]; refused $user touch include/x; refused $user rm pf'
check "user: creates a read-only file and writes it" '
  $user python3 -c "
import os
f = os.open(\"home/ro\", os.O_CREAT | os.O_WRONLY, 0o444); os.write(f, b\"data\"); os.close(f)"
  [ "$(cat home/ro)" = data ]; [ "$(stat -c %a home/ro)" = 444 ]'
check "user: reads a read-only file, over and over, that is being written" '
  $user python3 -c "
import os
f = os.open(\"home/rw\", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o444); os.write(f, b\"data\")
for _ in range(4):
    with open(\"home/rw\", \"rb\") as again: assert again.read() == b\"data\"
os.write(f, b\"more\"); os.close(f)"
  [ "$(cat home/rw)" = datamore ]'
check "user: groups count" '
  mkdir -m 770 grp; chgrp 4242 grp; echo g > grp/f; chmod 640 grp/f; chgrp 4242 grp/f
  refused $user cat grp/f
  [ "$(setpriv --reuid 1000 --regid 1000 --groups 4242 -- cat grp/f)" = g ]'
check "user: a file opened before a chmod stays open" '
  echo a > home/o; chmod 644 home/o; exec 5< <(:); exec 5<home/o; chmod 000 home/o; cat <&5'
check "user: set-id bits go when written" '
  $user bash -c "echo a > home/sid"; chmod 6755 home/sid; chmod 6777 home/sid
  $user bash -c "echo b >> home/sid"; [ "$(stat -c %a home/sid)" = 777 ]'
check "user: also when somebody else writes, who may" '
  chmod 6777 home/sid; chmod 755 home
  setpriv --reuid 1001 --regid 1001 --clear-groups -- bash -c "echo c >> home/sid"
  [ "$(stat -c %a home/sid)" = 777 ]; [ "$(tail -n 1 home/sid)" = c ]'

# The kernel takes the directory's lock to forget names in it, which chmod(2) holds until it returns: that comes
# right behind it.
check "user: a directory closed here is closed" '
  mkdir pub; echo data > pub/f; $user cat pub/f; $user stat pub/f; (exec 5<pub/f; chmod 700 pub
  for ((tries = 0; tries < 50; tries++)); do if $user cat pub/f; then sleep 0.1; else break; fi; done
  refused $user cat pub/f; refused $user stat pub/f; refused $user ls pub
  [ "$(cat pub/f)" = data ]); (cd pub; chmod 755 .; chmod 700 .; [ "$(/bin/pwd)" = "$mnt/pub" ])'

check "user: a device file of the server is no device" '
  mknod null c 1 3; chmod 600 null; refused $user sh -c ": <null"; refused sh -c ": <null"; rm null'

# A second mount, as if of another machine.
mount_it "" "$mnt2"
check "POSIX behaviour" '
  mkdir posix; python3 "$work/fuse_posix.py" "$mnt/posix" "$mnt2/posix" "$export_dir/posix"'
check "user: POSIX behaviour" '
  mkdir uposix; chown 1000:1000 uposix
  $user python3 "$work/fuse_posix.py" "$mnt/uposix" "$mnt2/uposix" "$export_dir/uposix"'
python3 -c 'import os, sys, time
f = os.open(sys.argv[1] + "/held", os.O_RDWR | os.O_CREAT)
os.write(f, b"data")
os.unlink(sys.argv[1] + "/held")
open(sys.argv[2], "w").close()
time.sleep(1000)' "$mnt2" "$work/held" &
holder=$!
until [ -e "$work/held" ]; do sleep 0.1; done
check "a removed file that is open has a silly name" 'ls -A "$export_dir" | grep -q "^\.nfs"'
daemon=$(pgrep -f "mount.nfs-rdma 127.0.0.1:$export_dir $mnt2 ")
kill $daemon
for _ in $(seq 200); do [ -n "$(tr -d "\0" 2>/dev/null <"/proc/$daemon/cmdline")" ] || break; sleep 0.1; done
check "it is gone when the daemon has ended" '! ls -A "$export_dir" | grep "^\.nfs"'
kill -9 $holder
wait $holder 2>/dev/null

# Something else is mounted there when the daemon, whose mount still has open files, is told to end.
mount_it "" "$mnt2"
daemon=$(pgrep -f "mount.nfs-rdma 127.0.0.1:$export_dir $mnt2 ")
exec 7>"$mnt2/open_below"
umount -l "$mnt2"
mount -t tmpfs tmpfs "$mnt2" && echo other >"$mnt2/other"
kill $daemon
for _ in $(seq 200); do [ -n "$(tr -d "\0" 2>/dev/null <"/proc/$daemon/cmdline")" ] || break; sleep 0.1; done
check "a daemon that ends leaves alone what is mounted in its place" '
  [ -z "$(tr -d "\0" 2>/dev/null <"/proc/'$daemon'/cmdline")" ]; [ "$(cat "$mnt2/other")" = other ]'
exec 7>&-
umount "$mnt2"

unmount_it
mount_it acregmin=3,acregmax=3,acdirmin=3,acdirmax=3
check "user: rights taken away on the server are gone after the attribute time-out" '
  mkdir revoked; echo data > revoked/f; $user cat revoked/f; exec 5<revoked/f; cat <&5
  chmod 700 "$export_dir/revoked"
  for _ in $(seq 100); do $user cat revoked/f >/dev/null 2>&1 || break; sleep 0.1; done
  refused $user cat revoked/f; refused $user stat revoked/f; refused $user ls revoked
  [ "$(cat revoked/f)" = data ]; chmod 755 "$export_dir/revoked"; chmod 600 "$export_dir/revoked/f"
  for _ in $(seq 100); do $user stat revoked/f >/dev/null 2>&1 && break; sleep 0.1; done
  $user stat revoked/f; refused $user cat revoked/f; [ "$(cat revoked/f)" = data ]'

# Close-to-open: changes made behind the mount's back.
check "a change on the server is seen at open" '
  echo one > c2o; cat c2o; sleep 0.02; echo three > "$export_dir/c2o"; [ "$(cat c2o)" = three ]'
check "a file replaced on the server is seen" '
  cat c2o; echo four > "$export_dir/c2o.new"; mv "$export_dir/c2o.new" "$export_dir/c2o"
  for _ in $(seq 65); do [ "$(cat c2o)" = four ] && exit 0; sleep 1; done; exit 1'
unmount_it
mount_it

# Directories that are replaced on the server while the mount knows the old ones.
check "a replaced directory is followed, whatever is asked of it" '
  for levels in d d/e d/e/f d/e/f/g; do
    remake() { rm -rf "$export_dir/d"; mkdir -p "$export_dir/$levels"; echo $1 > "$export_dir/$levels/x"
               echo $1 > "$export_dir/$levels/only$1"; }
    know() { cat $levels/x; ls -lR d; } >/dev/null
    remake 0; know
    remake 1; [ "$(cat $levels/x)" = 1 ];                       know
    remake 2; [ "$(cat $levels/only2)" = 2 ];                   know
    remake 3; echo made > $levels/made; [ "$(cat "$export_dir/$levels/made")" = made ]; know
    remake 4; mkdir $levels/dir; [ -d "$export_dir/$levels/dir" ];  know
    remake 5; mkdir -p $levels/x5/y; [ -d "$export_dir/$levels/x5/y" ]; know
    remake 6; rm $levels/x; [ ! -e "$export_dir/$levels/x" ];   ls -lR d >/dev/null
    remake 7; [ "$(ls $levels)" = "only7
x" ];                                                           know
    remake 8; ln -s target $levels/s; [ -L "$export_dir/$levels/s" ]; know
    remake 9; ln $levels/x $levels/l; [ -e "$export_dir/$levels/l" ]; know
    remake 10; mv $levels/x $levels/y; [ "$(cat "$export_dir/$levels/y")" = 10 ]; ls -lR d >/dev/null
    remake 11; (cd $levels; [ "$(cat x)" = 11 ]);               know
    remake 12; chmod 640 $levels/x; [ "$(stat -c %a "$export_dir/$levels/x")" = 640 ]; know
    remake 13; mkfifo $levels/p; [ -p "$export_dir/$levels/p" ]; know
  done
  rm -rf "$export_dir/d"; rc=0; cat $levels/x 2>"$work/err" || rc=$?
  [ $rc = 1 ]; grep -q "No such file" "$work/err"'

unmount_it
mount_it noac
check "noac: a change is seen by an open file" '
  exec 5<c2o; cat c2o; sleep 0.02; printf FOUR > "$export_dir/c2o"
  python3 -c "
import os
assert os.pread(5, 4, 0) == b\"FOUR\", os.pread(5, 4, 0)"'
unmount_it
mount_it
check "after mounting again: the copy is the original" 'diff -r --no-dereference /usr/include include'
check "in the export: the copy is the original" 'diff -r --no-dereference /usr/include "$export_dir/include"'

# The server dies.
dd if=/dev/urandom of="$work/rnd" bs=1M count=200 status=none
(cd "$mnt" && dd if="$work/rnd" of=killed bs=64k conv=fsync status=none; echo $? >"$work/dd.rc") &
writer=$!
for pause in 0.05 0.12 0.2 0.3; do
  sleep $pause
  kill_server
  start_server
done
wait $writer
check "dd with conv=fsync through four kills" '[ "$(cat '"$work"'/dd.rc)" = 0 ]; cmp killed '"$work"'/rnd; cmp "$export_dir/killed" '"$work"'/rnd'

(cd "$mnt" && cp -a /usr/include/linux killed_tree; echo $? >"$work/cp.rc") &
writer=$!
for pause in 0.1 0.2 0.2 0.3; do
  sleep $pause
  kill_server
  start_server
done
wait $writer
check "cp -a through four kills" '[ "$(cat '"$work"'/cp.rc)" = 0 ]; diff -r /usr/include/linux killed_tree; diff -r /usr/include/linux "$export_dir/killed_tree"'

if [ "$fabric" = iwarp ] && [ -x "$bin/nfs-rdma" ]; then
  mount_it crc=require "$mnt2"
  check "CRC32c when the mount asks for it" "
    $bin/nfs-rdma status --mount . --json | grep -q '\"crc\":false'
    $bin/nfs-rdma status --mount $mnt2 --json | grep -q '\"crc\":true'
    cmp $mnt2/killed $work/rnd"
  umount "$mnt2"
  check "status says RDMA" "$bin/nfs-rdma status --mount . --json | tee $work/status.json | grep -q '\"fabric\":\"iwarp\"'"
fi

# The end: SIGTERM unmounts, data is there.
(cd "$mnt" && echo last > last)
exec 6>"$mnt/open_at_the_end"
printf unflushed >&6
exec 6>&-
daemon=$(pgrep -f "mount.nfs-rdma 127.0.0.1:$export_dir")
kill $daemon
for _ in $(seq 100); do mountpoint -q "$mnt" || break; sleep 0.1; done
mountpoint -q "$mnt" && { echo "FAIL SIGTERM did not unmount"; failures=$((failures + 1)); }
# The daemon ends even when the server is gone. (Where nobody reaps it, an empty command line is left.)
kill_server
for _ in $(seq 100); do [ -n "$(tr -d "\0" 2>/dev/null <"/proc/$daemon/cmdline")" ] || break; sleep 0.1; done
[ -n "$(tr -d '\0' 2>/dev/null <"/proc/$daemon/cmdline")" ] && { echo "FAIL the daemon stays"; failures=$((failures + 1)); }
[ "$(cat "$export_dir/last")" = last ] || { echo "FAIL data before SIGTERM"; failures=$((failures + 1)); }

echo "$failures failures"
[ $failures = 0 ]
