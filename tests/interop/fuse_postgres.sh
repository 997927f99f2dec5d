#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# PostgreSQL (Debian's package, which the caller installs) with its data on a FUSE mount: pgbench while
# the NFS server is killed, then a crash of the database itself. What was committed is there, sums
# agree, and pg_amcheck finds nothing.
#
#   fuse_postgres.sh BIN_DIR [iwarp|tcp] [MOUNT_OPTIONS]     needs root, /dev/fuse and postgresql
#   KILLS=3 SECONDS_EACH=10 by the environment. Not part of CI.
set -u

# shellcheck source=tests/interop/fuse_server.sh
. "$(dirname "$0")/fuse_server.sh"

pg=$(echo /usr/lib/postgresql/*/bin)
[ -x "$pg/pgbench" ] || { echo "$(basename "$0") needs one version of Debian's postgresql"; exit 1; }
work=$(mktemp -d /tmp/nfs-rdma-postgres.XXXXXX)
chmod 755 "$work"
export_dir=$work/export
mnt=$work/mnt
data=$mnt/data
mkdir -p "$export_dir" "$mnt" "$work/state"
install -d -o postgres -g postgres "$work/log"
kills=${KILLS:-3}
each=${SECONDS_EACH:-10}

as() { setpriv --reuid postgres --regid postgres --init-groups -- env HOME="$work/log" "$@"; }
control() { as "$pg/pg_ctl" -D "$data" -l "$work/log/server" -w "$@"; }
start_database() { control -o "-k $work/log -c listen_addresses=''" start >/dev/null; }
fail() {
  echo "FAIL $1"
  tail -n 20 "$work/log/server" "$work/out"
  exit 1
}
clean_up() {
  [ -f "$data/postmaster.pid" ] && control -m immediate stop >/dev/null 2>&1
  umount -l "$mnt" 2>/dev/null
  [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null && wait "$server_pid" 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT

start_server
# shellcheck disable=SC2154  # fuse_server.sh sets it
"$bin/mount.nfs-rdma" "127.0.0.1:$export_dir" "$mnt" -o "$mount_by,retry=0" || exit 1
install -d -o postgres -g postgres -m 700 "$data"
as "$pg/initdb" -D "$data" -A trust >"$work/out" 2>&1 || fail initdb
start_database || fail "the database starts"
as "$pg/pgbench" -h "$work/log" -i -s 5 postgres >"$work/out" 2>&1 || fail "pgbench -i"
as "$pg/pgbench" -h "$work/log" -c 4 -T $((kills * each + each)) postgres >"$work/out" 2>&1 &
load=$!
for _ in $(seq "$kills"); do
  sleep "$each"
  kill_server
  start_server
done
wait "$load" || fail "pgbench through $kills kills of the server"
grep -q "^number of failed transactions: 0 " "$work/out" || fail "no transaction failed"
done_by=$(sed -n 's/^number of transactions actually processed: //p' "$work/out")
echo "ok   $done_by transactions through $kills kills of the server"

# The database dies, too: what it has committed is in its journal.
postmaster=$(head -n 1 "$data/postmaster.pid")
kill -9 "$postmaster"
pkill -9 -P "$postmaster"
pkill -9 -u postgres -x postgres
for _ in $(seq 100); do
  kill -0 "$postmaster" 2>/dev/null || break
  sleep 0.1
done
start_database || fail "the database starts again"
sums="select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history)
         and (select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history),
       count(*) from pgbench_history"
found=$(as psql -h "$work/log" -At -c "$sums" postgres)
[ "$found" = "t|$done_by" ] || fail "sums and count are t|$done_by and not $found"
echo "ok   everything committed is there after a crash of the database"
as "$pg/pg_amcheck" -h "$work/log" --install-missing --heapallindexed postgres >"$work/out" 2>&1 ||
  fail pg_amcheck
echo "ok   pg_amcheck finds nothing"
control stop >/dev/null || fail "the database stops"
umount "$mnt" || fail "the mount can be unmounted"
echo "0 failures"
