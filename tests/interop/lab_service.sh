#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lab_service.sh: nfs-rdmad as a service and our mount as one of the system's, in a guest with systemd as
# its first process: the procedure of RHEL for NFS over RDMA with Linux's own client (siw), what an
# administrator does to a running service, and mounts by fstab, units and autofs.
#
#   tests/interop/lab_service.sh [--all | --boot | --capabilities | --step NAME...] [--keep DIR]
#
#   --all            the steps that take longer, and a second boot with everything enabled
#   --boot           only that second boot
#   --step NAME      only this step, after those that it needs (lab_service_steps.sh has them all)
#   --capabilities   instead: take one capability after the other from the unit, and see what breaks
#   --keep DIR       leave the logs in DIR
#
# One line for each step; the first that fails ends it, with its output and the service's journal.
# shellcheck source=lab_common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lab_common.sh"

steps=quick keep='' chosen=()
while (($#)); do
    case $1 in
        --all) steps=all ;;
        --step) need_value "$@"; steps=chosen; chosen+=("$2"); shift ;;
        --boot) steps=boot ;;
        --capabilities) steps=capabilities ;;
        --keep) need_value "$@"; keep=$2; shift ;;
        -h | --help) show_help; exit 0 ;;
        *) usage_error "unknown option '$1'" ;;
    esac
    shift
done

# What a package would put where, and beside it what the guest lacks of libraries.
stage_package() {
    local build=$root/build/${PRESET:-release} each
    [[ -f $build/cmake_install.cmake ]] || cannot_run "$build is not built"
    DESTDIR=$stage/root cmake --install "$build" --prefix /usr --strip >"$stage/install.log" 2>&1 || {
        tail -n 5 "$stage/install.log" >&2
        cannot_run "cmake --install $build failed"
    }
    stage "$bin/nfs-rdmad" "$bin/mount.nfs-rdma" "$bin/nfs-rdma"
    for each in sbin/nfs-rdmad sbin/mount.nfs-rdma bin/nfs-rdma; do
        strip -o "$stage/root/usr/$each" "$bin/${each#*/}"
        rm "$stage/${each#*/}"
    done
    tar -C "$stage" -cf "$stage/package.tar" root lib
    rm -rf "${stage:?}"/{root,lib}
    cp "$root/tests/interop/lab_service_steps.sh" "$root/tests/interop/lab_tree.sh" "$stage/"
    stage_quota_tools
}

# Before systemd starts: the package is there, and nothing of it enabled.
cat >"$stage/before.sh" <<'END'
set -eu
mkdir -p /run/package
tar -C /run/package -xf /host/package.tar
cp -a /run/package/root/. /
mkdir -p /usr/local/lib/nfs-rdma
cp -a /run/package/lib/. /usr/local/lib/nfs-rdma/
rm -rf /run/package
echo /usr/local/lib/nfs-rdma >/etc/ld.so.conf.d/nfs-rdma.conf
ldconfig
echo 'guest:x:1000:1000:guest:/home/guest:/bin/bash' >>/etc/passwd
echo 'guest:x:1000:' >>/etc/group
mkdir -p /home/guest && chown 1000:1000 /home/guest
if [ -f /host/before_more.sh ]; then . /host/before_more.sh; fi
END

# boot WHAT: a guest that runs the steps of it; what they say appears as they say it.
boot() {
    local status=0
    printf 'set -euo pipefail\n. /host/lab_service_steps.sh\nrun_%s %s\n' "$1" "${chosen[*]-}" >"$stage/guest.sh"
    "$lab/lab" run -S -s 64 -b before.sh -d "$stage" -t "${LAB_LIMIT:-$limit}" -k "$stage/console.log" -- \
        bash guest.sh || status=$?
    if [[ -n $keep ]]; then
        mkdir -p "$keep"
        cp "$stage"/*.log "$keep/" 2>/dev/null || :
    fi
    ((status == 0)) || die "the service in the guest ($1): failed ($status)"
}

stage_package
limit=400
if [[ $steps != quick ]]; then limit=900; fi
if [[ $steps != boot ]]; then
    step "nfs-rdma.service and mounts, $steps"
    boot "$steps"
fi
if [[ $steps == all || $steps == boot ]]; then
    # A boot as an administrator has it every day: everything is enabled, nobody does anything.
    sed -n '/^write_configuration/,/^}/p;/^before_second_boot/,/^}/p' "$stage/lab_service_steps.sh" \
        >"$stage/before_more.sh"
    echo before_second_boot >>"$stage/before_more.sh"
    step "a boot with all of it enabled"
    boot second_boot
fi
good "the service: ok"
