#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ACLs on the FUSE mount, with the programs that people use for them (Debian's nfs4-acl-tools): read,
# changed and inherited, what they do to an ordinary user, and that programs which know nothing of
# them go on as before.
#
#   fuse_acl.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root, /dev/fuse and nfs4-acl-tools
# shellcheck disable=SC2016  # check() evaluates its commands
set -u

# shellcheck source=tests/interop/fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

# In memory: every file system there has POSIX ACLs, which is what our server maps them to.
export_dir=$(mktemp -d /dev/shm/nfs-rdma-acl.XXXXXX)
work=$(mktemp -d /tmp/nfs-rdma-acl.XXXXXX)
mnt=$work/mnt
chmod 755 "$work" "$export_dir"
mkdir -p "$mnt" "$work/state"
failures=0
for tool in nfs4_getfacl nfs4_setfacl getfacl getfattr; do
  command -v $tool >/dev/null || { echo "$tool is missing: scripts/install-deps --only test"; exit 1; }
done

mount_it() {  # mount_it OPTIONS
  # shellcheck disable=SC2154  # fuse_server.sh sets it
  "$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$mnt" -o "$mount_by,retry=0,$1" || {
    echo "mount failed"; cat "$work/server.log"; exit 1
  }
}
clean_up() {
  umount -l "$mnt" 2>/dev/null
  [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null && wait "$server_pid" 2>/dev/null
  rm -rf "$work" "$export_dir"
}
trap clean_up EXIT
check() {  # check NAME COMMAND...: runs it in a shell of its own, in the mount
  local name=$1
  shift
  if (cd "$mnt" && timeout 60 bash -euc "$*") >"$work/out" 2>&1; then
    echo "ok   $version: $name"
  else
    echo "FAIL $version: $name (exit $?)"
    sed 's/^/     /' "$work/out" | tail -n 15
    failures=$((failures + 1))
  fi
}
# In a check: COMMAND must fail. (`set -e` lets "! COMMAND" pass whatever it does.)
refused() {
  if "$@" >/dev/null 2>&1; then echo "not refused: $*"; return 1; fi
}
errno_of() {  # errno_of FUNCTION ARGUMENTS...: of a call of Python's os, as a word; "" when it works
  python3 -c '
import errno, os, sys
try: getattr(os, sys.argv[1])(*(a.encode() if i == 2 else a for i, a in enumerate(sys.argv[2:])))
except OSError as error: print(errno.errorcode[error.errno])' "$@"
}
export -f refused errno_of
export export_dir mnt work
user="setpriv --reuid 1000 --regid 1000 --clear-groups --"
export user

start_server
for version in 4.2 4.1; do
  rm -rf "${export_dir:?}"/*
  mount_it "vers=$version"
  check "an ACL that nobody has set says what the mode says" '
    echo data > f; chmod 640 f; nfs4_getfacl f | tee '"$work"'/acl
    grep -qx "A::OWNER@:rwatTcCy" '"$work"'/acl; grep -qx "A:g:GROUP@:rtcy\|A::GROUP@:rtcy" '"$work"'/acl
    ! grep "^A::EVERYONE@:r" '"$work"'/acl'
  check "an ACE gives a user what the mode does not, at once" '
    refused $user cat f
    nfs4_setfacl -a A::1000:r f
    [ "$($user cat f)" = data ]; nfs4_getfacl f | grep "^A::1000:r"
    refused $user bash -c "echo more >> f"
    getfacl -cnp "$export_dir/f" | grep -x "user:1000:r--"'
  check "and takes it away again" '
    nfs4_setfacl -x A::1000:rtcy f || nfs4_setfacl -x "$(nfs4_getfacl f | grep ^A::1000:)" f
    refused $user cat f; refused $user test -r f
    ! getfacl -cnp "$export_dir/f" | grep "^user:1000"'
  check "a mode that an ACL changes is seen" '
    echo data > m; chmod 600 m; [ "$(stat -c %a m)" = 600 ]
    nfs4_setfacl -s "A::OWNER@:RW,A::GROUP@:R,A::EVERYONE@:R" m
    [ "$(stat -c %a m)" = 644 ]'
  check "a file that is open stays open" '
    echo data > o; chmod 644 o; exec 5<o; nfs4_setfacl -s "A::OWNER@:RW,A::GROUP@:tcy,A::EVERYONE@:tcy" o
    cat <&5; refused $user cat o'
  check "an inherited ACE" '
    mkdir d; nfs4_setfacl -a A:fd:1000:rx d; nfs4_getfacl d | grep "^A:.*[fd].*:1000:"
    echo data > d/f; chmod o-rwx d/f; [ "$($user cat d/f)" = data ]'
  check "a directory can be closed to a user" '
    mkdir c; echo data > c/f; chmod 755 c; $user cat c/f; $user ls c
    nfs4_setfacl -a D::1000:rx c; refused $user ls c
    for _ in $(seq 70); do $user stat c/f >/dev/null 2>&1 || exit 0; sleep 1; done; exit 1'
  check "who may not change it, may not" '
    echo data > p; chmod 644 p; refused $user nfs4_setfacl -a A::1000:rw p; refused $user bash -c "echo more > p"
    $user nfs4_getfacl p'
  check "names: nobody of that name is EINVAL" '
    echo data > n; refused nfs4_setfacl -a A::there-is-no-such-user@nowhere:r n; nfs4_getfacl n'
  check "it is listed, and read and copied as bytes" '
    echo data > l; [[ "$(getfattr -d -m - l)" == *system.nfs4_acl* ]]
    python3 - <<PY
import os
assert "system.nfs4_acl" in os.listxattr("l"), os.listxattr("l")
acl = os.getxattr("l", "system.nfs4_acl")
assert int.from_bytes(acl[:4], "big") >= 3 and len(acl) % 4 == 0
os.setxattr("l", "system.nfs4_acl", acl)
assert os.getxattr("l", "system.nfs4_acl") == acl
PY'
  check "what is no ACL is EINVAL, and so is having none" '
    echo data > e; [ "$(errno_of setxattr e system.nfs4_acl x)" = EINVAL ]
    [ "$(errno_of setxattr e system.nfs4_acl "")" = EINVAL ]
    [ "$(errno_of removexattr e system.nfs4_acl)" = EINVAL ]; nfs4_getfacl e'
  check "other names of the system have no attributes" '
    [ "$(errno_of getxattr e system.nfs4_dacl)" = ENOTSUP ]
    [ "$(errno_of getxattr e system.posix_acl_access)" = ENOTSUP ]
    [ "$(errno_of getxattr e security.capability)" = ENOTSUP ]'
  check "programs that know nothing of it go on as before" '
    mkdir t; echo data > t/f; ln -s f t/s; mkfifo t/p; nfs4_setfacl -a A::1000:r t/f
    ls -lR t; cp -a t t2; diff -r --no-dereference t/f t2/f; [ "$(readlink t2/s)" = f ]; ls -l t2
    cp -a t '"$work"'/t3; tar -C t -cf '"$work"'/t.tar . ; rm -rf '"$work"'/t3
    getfattr -h -R -d -m - t >/dev/null
    python3 -c "import shutil; shutil.copytree(\"t\", \"t4\", symlinks=True, ignore=lambda d, n: [\"p\"])"
    rm -r t t2 t4'
  umount "$mnt"
done
version=3
mount_it vers=3
check "version 3 has none" '
  echo data > f3; [ "$(errno_of getxattr f3 system.nfs4_acl)" = ENOTSUP ]
  nfs4_getfacl f3 2>&1 | grep "not supported"'
umount "$mnt"

echo "$failures failures"
[ $failures = 0 ]
