# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# guest_steps.sh: what packages.sh tries in the guest, behind lab_service_steps.sh, whose helpers it uses.
#
# /host/now has the packages, /host/next the same as a later version, /host/debs what the guest lacks for them.
# Clients have up to 90 seconds to come back to a server that was restarted.
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2034  # of run_steps
step_limit=300
unit=nfs-rdma.service
packages=(nfs-rdma-server nfs-rdma-client nfs-rdma-tools libnfsrdma1 libnfsrdma-dev nfs-rdma-doc)

run_packages() {
    mkdir -p /srv/data /mnt/{fuse,kernel}
    chmod 1777 /srv/data
    modprobe -a fuse nfsv4
    run_steps installed served upgraded again removed client_removed purged masked load_no port_taken
}

# What an administrator has edited stays, without a question.
apt() { apt-get -q -y -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root -o Dpkg::Options::=--force-confold --no-install-recommends "$@"; }
installed_version() { dpkg-query -W -f '${Version}' "$1"; }
both_mounts() { is_mounted /mnt/fuse fuse.nfs-rdma && is_mounted /mnt/kernel nfs4; }

step_installed() {
    not test -e /usr/sbin/nfs-rdmad
    [[ $(dpkg -S /etc/rdma) == "rdma-core: /etc/rdma" ]]
    apt install /host/debs/*.deb /host/now/*.deb
    active
    [[ $(systemctl is-enabled "$unit") == enabled ]]
    listening 20049
    listening 2049
    journalctl -u "$unit" -o cat --no-pager | grep 'nothing is exported'
    [[ $(stat -c %a /var/lib/nfs-rdma) == 700 ]]
    [[ $(dpkg -S /etc/rdma/rdma.conf) == "nfs-rdma-server: /etc/rdma/rdma.conf" ]]
    [[ $(dpkg -S /etc/rdma) == *rdma-core* ]]
    systemd-analyze --man=no verify "$unit"
    systemctl reload "$unit"
    dpkg --audit
    [[ -z $(dpkg --audit) ]]
    echo "started and enabled, exports nothing and says so"
}

step_served() {
    echo '/srv/data 127.0.0.1(rw,no_root_squash,insecure)' >>/etc/nfs-rdma.exports
    systemctl reload "$unit"
    mount -t nfs-rdma 127.0.0.1:/srv/data /mnt/fuse
    timeout -k 1 60 mount -t nfs -o proto=tcp,vers=4.2 127.0.0.1:/srv/data /mnt/kernel
    both_mounts
    nfs-rdma status --mount /mnt/fuse | tail -n 1
    echo before >/mnt/fuse/before
    [[ $(</mnt/kernel/before) == before ]]
    echo "a mount by RDMA, and one of Linux's client"
}

# write_on FILE: one line after the other until /tmp/enough is there; how many, into FILE's name below /tmp.
write_on() {
    local i=0
    exec 5>"$1"
    until [[ -e /tmp/enough ]]; do
        i=$((i + 1))
        echo "line $i" >&5 || return 1
        # A server is asked now and then, not only the cache.
        if ((i % 200 == 0)); then sync -d "$1" || return 1; fi
    done
    exec 5>&-
    echo "$i" >"/tmp/written.${1//\//_}"
}
# while_written COMMAND...: runs it while both mounts are written to, and looks at what came of that.
while_written() {
    local fuse kernel each wrote
    rm -f /tmp/enough /srv/data/by-*
    write_on /mnt/fuse/by-fuse &
    fuse=$!
    write_on /mnt/kernel/by-kernel &
    kernel=$!
    until_true 60 test -s /srv/data/by-fuse
    until_true 60 test -s /srv/data/by-kernel
    "$@"
    # They do go on.
    each=$(stat -c %s /srv/data/by-fuse)
    until_true 150 grown /srv/data/by-fuse "$each"
    each=$(stat -c %s /srv/data/by-kernel)
    until_true 150 grown /srv/data/by-kernel "$each"
    touch /tmp/enough
    wait $fuse
    wait $kernel
    for each in fuse kernel; do
        wrote=$(<"/tmp/written._mnt_${each}_by-$each")
        seq -f 'line %.0f' "$wrote" | cmp - "/srv/data/by-$each"
    done
    both_mounts
    echo anew >/mnt/fuse/anew
    [[ $(</mnt/kernel/anew) == anew ]]
}
grown() { (($(stat -c %s "$1") > $2)); }

step_upgraded() {
    local before key edited
    before=$(main_pid) key=$(sha256sum /var/lib/nfs-rdma/handle-key) edited=$(</etc/nfs-rdma.exports)
    while_written apt install /host/next/*.deb
    [[ $(installed_version nfs-rdma-server) == *+next ]]
    active
    [[ $(main_pid) != "$before" ]]
    [[ $(sha256sum /var/lib/nfs-rdma/handle-key) == "$key" ]]
    # What was edited is kept and the new sample lies beside it; what was not is the new one.
    [[ $(</etc/nfs-rdma.exports) == "$edited" ]]
    tail -n 1 /etc/nfs-rdma.exports.dpkg-dist | grep 'Of the later version'
    tail -n 1 /etc/rdma/rdma.conf | grep 'Of the later version'
    not test -e /etc/rdma/rdma.conf.dpkg-dist
    # The mount's program was replaced, too, while it ran.
    grep deleted <(readlink "/proc/$(pgrep -o mount.nfs-rdma)/exe")
    nfs-rdma status --mount /mnt/fuse | tail -n 1
    echo "pid $before, then $(main_pid); $(</tmp/written._mnt_fuse_by-fuse) and $(</tmp/written._mnt_kernel_by-kernel) lines written meanwhile"
}

step_again() {
    local before
    before=$(main_pid)
    while_written apt --reinstall install /host/next/nfs-rdma-server_next.deb
    [[ $(main_pid) != "$before" ]]
    active
    echo "reinstalled while it was used"
}

step_removed() {
    local key edited reader
    key=$(sha256sum /var/lib/nfs-rdma/handle-key) edited=$(</etc/nfs-rdma.exports)
    apt remove nfs-rdma-server
    not active
    not listening 20049
    not listening 2049
    [[ $(dpkg-query -W -f '${db:Status-Abbrev}' nfs-rdma-server) == rc* ]]
    [[ $(</etc/nfs-rdma.exports) == "$edited" && -e /etc/rdma/rdma.conf ]]
    [[ $(sha256sum /var/lib/nfs-rdma/handle-key) == "$key" ]]
    # Who uses the mount waits, and goes on when the server is back.
    random_file /srv/data/later 300000
    cat /mnt/fuse/later >/tmp/later &
    reader=$!
    apt install /host/next/nfs-rdma-server_next.deb
    active
    until_true 150 not_running $reader
    wait $reader
    cmp /srv/data/later /tmp/later
    [[ $(</etc/nfs-rdma.exports) == "$edited" ]]
    until_true 150 timeout 20 touch /mnt/kernel/after-return
    echo "removed: configuration and state kept; installed again: the mounts go on"
}
not_running() { ! kill -0 "$1" 2>/dev/null; }

step_client_removed() {
    apt remove nfs-rdma-client
    not test -e /usr/sbin/mount.nfs-rdma
    # What is mounted stays.
    echo still >/mnt/fuse/still
    [[ $(</srv/data/still) == still ]]
    umount /mnt/fuse
    until_true 10 no_daemon
    apt install /host/next/nfs-rdma-client_next.deb
    mount -t nfs-rdma 127.0.0.1:/srv/data /mnt/fuse
    umount /mnt/fuse
    echo "a mount outlives its package"
}

left_behind() {
    find / -xdev \( -path /proc -o -path /host -o -path /sys -o -path /run -o -path /tmp -o -path /srv -o -path /mnt \
        -o -path /var/cache -o -path /var/log \) -prune -o \( -name '*nfs-rdma*' -o -name '*nfsrdma*' -o -path '/etc/rdma/rdma.conf*' \) -print
}

step_purged() {
    umount /mnt/kernel
    apt purge "${packages[@]}"
    not active
    not listening 20049
    not test -e /var/lib/nfs-rdma
    left_behind
    [[ -z $(left_behind) ]]
    [[ -e /etc/rdma/modules/rdma.conf ]]
    not systemctl cat "$unit"
    [[ -z $(systemctl --failed --plain --no-legend) ]]
    # And from nothing again.
    apt install /host/now/*.deb
    active
    [[ $(installed_version nfs-rdma-server) != *+next ]]
    apt purge "${packages[@]}"
    echo "nothing is left of it"
}

step_masked() {
    systemctl mask "$unit"
    apt install /host/now/*.deb
    not active
    apt purge "${packages[@]}"
    systemctl unmask "$unit"
    rm -f /etc/systemd/system/nfs-rdma.service
    echo "a masked service is not started"
}

step_load_no() {
    mkdir -p /etc/rdma
    echo NFSoRDMA_LOAD=no >/etc/rdma/rdma.conf
    apt install /host/now/*.deb
    [[ $(</etc/rdma/rdma.conf) == NFSoRDMA_LOAD=no ]]
    not active
    not systemctl is-failed "$unit"
    echo NFSoRDMA_LOAD=yes >/etc/rdma/rdma.conf
    systemctl start "$unit"
    active
    apt purge "${packages[@]}"
    echo "NFSoRDMA_LOAD=no beforehand: installed, not started, no failure"
}

# As with nfs-kernel-server beside it: the package is installed all the same, and the log says why
# it does not start. (Whose the port is shows to root alone, and not with the unit's rights.)
step_port_taken() {
    local other
    nc -lk 2049 &
    other=$!
    until_true 10 listening 2049
    apt install /host/now/*.deb
    not active
    [[ -z $(dpkg --audit) ]]
    journalctl -u "$unit" -o cat --no-pager | grep -m 1 'cannot listen on .*:2049: .*in use'
    # The remedy of README.Debian.
    echo NFSoRDMA_TCP_PORT=off >>/etc/rdma/rdma.conf
    systemctl reset-failed "$unit" || :
    systemctl restart "$unit"
    active
    listening 20049
    kill $other
    echo "port 2049 was taken: installed, and it starts with NFSoRDMA_TCP_PORT=off"
}
