#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ACLs on the FUSE mount, with the programs that people use for them (of version 4 Debian's
# nfs4-acl-tools, of version 3 getfacl and setfacl): read, changed and inherited, what they do to an
# ordinary user, and that programs which know nothing of them go on as before.
#
#   fuse_acl.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root, /dev/fuse, nfs4-acl-tools and acl
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
for tool in nfs4_getfacl nfs4_setfacl getfacl setfacl getfattr; do
  command -v $tool >/dev/null || { echo "$tool is missing: scripts/install-deps --only test"; exit 1; }
done

mount_it() {  # mount_it OPTIONS
  mount_on "$mnt" "$1"
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
rm -rf "${export_dir:?}"/*
mount_it vers=3
# shellcheck source=tests/interop/lab_acl.sh
. "$(dirname "$0")/lab_acl.sh"
export -f same_acl has_acl
export here_root=$export_dir there_root=$mnt
check "NFSv4's are not there" '
  echo data > f3; [ "$(errno_of getxattr f3 system.nfs4_acl)" = ENOTSUP ]
  nfs4_getfacl f3 2>&1 | grep "not supported"
  [ "$(errno_of getxattr f3 user.x)" = ENOTSUP ]'
check "a file that has a mode alone has no attributes" '
  echo data > f; chmod 640 f; same_acl f
  [ "$(errno_of getxattr f system.posix_acl_access)" = ENODATA ]
  [ "$(errno_of getxattr f system.posix_acl_default)" = ENODATA ]
  [ -z "$(getfattr -d -m - f)" ]; [[ "$(ls -l f)" == -rw-r-----\ * ]]'
check "an entry gives a user what the mode does not, at once" '
  refused $user cat f
  setfacl -m u:1000:r,g:55:rw f; has_acl f user:1000:r--; has_acl f mask::rw-
  [ "$($user cat f)" = data ]; refused $user bash -c "echo more >> f"
  [[ "$(ls -l f)" == -rw-rw----+* ]]; [ "$(stat -c %a f)" = 660 ]'
check "and a mask takes it away again" '
  setfacl -m m::- f; has_acl f mask::---; refused $user cat f; [ "$(stat -c %a f)" = 600 ]
  setfacl -m m::r f; [ "$($user cat f)" = data ]; [ "$(stat -c %a f)" = 640 ]'
check "so do a chmod, and no ACL" '
  chmod 614 f; has_acl f mask::--x; refused $user cat f
  setfacl -b f; same_acl f; [ "$(getfacl -cEnp f | grep -c .)" = 3 ]; [ "$(stat -c %a f)" = 604 ]
  $user cat f; setfacl -m o::- f; refused $user cat f; same_acl f'
check "removing one leaves the mode" '
  echo data > r; chmod 640 r; setfacl -m u:1000:rwx r; [ "$(stat -c %a r)" = 670 ]
  [ "$(errno_of removexattr r system.posix_acl_access)" = "" ]
  same_acl r; [ "$(stat -c %a r)" = 670 ]; [ "$(errno_of getxattr r system.posix_acl_access)" = ENODATA ]
  [ "$(errno_of removexattr r system.posix_acl_access)" = "" ]
  [ "$(errno_of removexattr r system.posix_acl_default)" = "" ]'
check "a file that is open stays open" '
  echo data > o; chmod 644 o; exec 5<o; setfacl -m u:1000:-,g::-,o::- o
  cat <&5; refused $user cat o'
check "directories have default ACLs, beside the other one" '
  mkdir d; chmod 755 d; setfacl -m u:1000:rwx d
  setfacl -d -m u::rwx,g::rx,o::-,u:1000:rx d; has_acl d default:user:1000:r-x; has_acl d user:1000:rwx
  setfacl -m u:1001:r d; has_acl d default:user:1000:r-x; has_acl d user:1001:r--
  setfacl -b d; same_acl d; getfacl -cEnp "$export_dir/d" | grep -c . | grep -qx 3
  setfacl -d -m u:1000:rx d; setfacl -k d; same_acl d
  echo data > n; refused setfacl -d -m u:1000:r n'
check "what is made there inherits it, whatever the umask" '
  mkdir i; setfacl -d -m u::rwx,g::rwx,o::rx,u:1000:rwx i; umask 077
  mkdir i/d; echo data > i/f; mkfifo i/p; (set -C; echo data > i/x); python3 -c "open(\"i/y\", \"x\").close()"
  for name in d f p x y; do has_acl i/$name user:1000:rwx; done
  [ "$(stat -c %a i/d i/f i/p i/x i/y | tr "\n" " ")" = "775 664 664 664 664 " ]
  has_acl i/d default:user:1000:rwx; $user bash -c "echo more >> i/f"
  setfacl -k i; echo data > i/g; [ "$(stat -c %a i/g)" = 600 ]; mkdir i/e; [ "$(stat -c %a i/e)" = 700 ]
  (umask 027; echo data > u; mkdir v; mkfifo w; [ "$(stat -c %a u v w | tr "\n" " ")" = "640 750 640 " ])
  setfacl -d -m u::rwx,g::rx,o::- "$export_dir/i"
  for _ in $(seq 50); do
    echo data > i/h; [ "$(stat -c %a i/h)" = 640 ] && exit 0; rm i/h; sleep 1
  done; exit 1'
check "a directory can be closed to a user" '
  mkdir c; echo data > c/f; chmod 755 c; $user cat c/f; $user ls c; setfacl -m u:1000:- c; refused $user ls c
  for _ in $(seq 70); do $user stat c/f >/dev/null 2>&1 || exit 0; sleep 1; done; exit 1'
check "who may not change it, may not" '
  echo data > p; chmod 644 p; refused $user setfacl -m u:1000:rw p; refused $user bash -c "echo more > p"
  $user getfacl p; same_acl p'
check "many entries, set and seen" '
  echo data > m; entries=$(seq -f u:%.0f:r -s , 2001 2500); setfacl -m "$entries" m; has_acl m user:2500:r--
  [ "$(getfacl -cEnp m | grep -c ^user:2)" = 500 ]; setfacl -x u:2250 m; same_acl m'
check "it is listed, and read and copied as bytes" '
  echo data > l; setfacl -m u:1000:r l; [[ "$(getfattr -d -m - l)" == *system.posix_acl_access* ]]
  mkdir ld; setfacl -m u:1000:r,d:u:1000:r ld; cp -a l l2; same_acl l2; has_acl l2 user:1000:r--; cp -a ld ld2
  has_acl ld2 default:user:1000:r--
  python3 - <<PY
import os
assert os.listxattr("l") == ["system.posix_acl_access"], os.listxattr("l")
assert os.listxattr("ld") == ["system.posix_acl_access", "system.posix_acl_default"], os.listxattr("ld")
acl = os.getxattr("l", "system.posix_acl_access")
assert acl[:4] == bytes([2, 0, 0, 0]) and len(acl) == 4 + 5 * 8
os.setxattr("l", "system.posix_acl_access", acl)
assert os.getxattr("l", "system.posix_acl_access") == acl
PY'
check "what is no ACL is EINVAL, and changes nothing" '
  echo data > e; chmod 640 e; setfacl -m u:1000:r e
  python3 - <<PY
import errno, os, struct
def acl(*entries, version=2):
    return struct.pack("<I", version) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
none = 0xffffffff
owner, user, group, mask, other = (1, 6, none), (2, 4, 1000), (4, 4, none), (16, 4, none), (32, 0, none)
for bad in (b"x", acl(owner, group, other, version=1), acl(owner, group, other)[:-1], acl(owner, other),
            acl(owner, user, group, other), acl(other, group, owner), acl(owner, owner, group, other),
            acl(owner, (2, 4, none), group, mask, other), acl(owner, group, (64, 4, 0), other)):
    try: os.setxattr("e", "system.posix_acl_access", bad)
    except OSError as error: assert error.errno in (errno.EINVAL, errno.EOPNOTSUPP), (bad, error)
    else: assert False, bad
PY
  has_acl e user:1000:r--'
check "programs that know nothing of it go on as before" '
  mkdir t; echo data > t/f; ln -s f t/s; mkfifo t/p; setfacl -m u:1000:r t/f
  ls -lR t; cp -a t t2; diff -r --no-dereference t/f t2/f; [ "$(readlink t2/s)" = f ]; ls -l t2
  getfattr -h -R -d -m - t >/dev/null; tar --acls -C t -cf '"$work"'/t.tar .; mkdir t3; tar --acls -C t3 -xf '"$work"'/t.tar
  has_acl t3/f user:1000:r--; rm -r t t2 t3'
umount "$mnt"
mount_it vers=3,noacl
check "with noacl there are none" '
  echo data > q; setfacl -m u:1000:r "$export_dir/q"; ls -l q; refused setfacl -m u:1000:rw q
  [ "$(getfacl -cEnp q | grep -c .)" = 3 ]; (umask 027; echo data > q2; [ "$(stat -c %a q2)" = 640 ])
  [ "$(errno_of listxattr q)" = ENOTSUP ] || python3 -c "import os; assert os.listxattr(\"q\") == []"'
umount "$mnt"

echo "$failures failures"
[ $failures = 0 ]
