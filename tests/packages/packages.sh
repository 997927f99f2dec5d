#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# packages.sh: builds the packages as a user or a distribution would, and tries them.
#
#   tests/packages/packages.sh [--quick | --only PART...] [--tests] [--keep DIR]
#
#   --quick      what needs no build of packages: versions, build dependencies, the source package and lintian's
#                opinion of it, the RPM spec, and that all which build/release installs goes into one package each.
#                A few seconds; .ci/run has it as "packages"
#   --only PART  these parts; those that look at packages take the ones of the last "build"
#   --tests      let dpkg-buildpackage run the package's own short tests, which it does unless told otherwise
#   --keep DIR   leave the guest's logs in DIR
#
# Parts, in order; without --only all of them:
#   quick      see above
#   build      dpkg-buildpackage -us -uc -b of a copy of this tree (half an hour with a cold compiler cache)
#   lint       lintian: no error and no warning
#   contents   no file twice, hardened programs, manual pages, conffiles, names in the library
#   library    programs in C and C++ built with nothing but the unpacked libnfsrdma-dev, against a server
#   chroot     a bare Debian (mmdebstrap, root): install, run, purge; nothing is left
#   guest      a virtual machine with systemd (scripts/vm): install, upgrade, remove, reinstall and purge with the
#              service running and mounts in use (guest_steps.sh)
#   readme     the same bare machine again: what README.md says, typed as it stands (readme_steps.py)
#   rpm        rpmbuild -bb of the spec with Debian's rpmbuild, without dependencies and debug packages
#
# Packages and logs: build/packages. A part that cannot run here says so and counts as failed with CI=true.
# shellcheck source=../../scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$root"

all_parts=(quick build lint contents library chroot guest readme rpm)
parts=() keep='' build_options="parallel=$(cores) nocheck"
while (($#)); do
    case $1 in
        --quick) parts+=(quick) ;;
        --only)
            need_value "$@"
            [[ " ${all_parts[*]} " == *" $2 "* ]] || usage_error "unknown part '$2' (${all_parts[*]})"
            parts+=("$2")
            shift
            ;;
        --tests) build_options="parallel=$(cores)" ;;
        --keep) need_value "$@"; keep=$2; shift ;;
        -h | --help) show_help; exit 0 ;;
        *) usage_error "unknown option '$1'" ;;
    esac
    shift
done
((${#parts[@]})) || parts=("${all_parts[@]}")

out=$root/build/packages
mkdir -p "$out"
version=$(sed -n 's/^project(nfs-rdma VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
names=(nfs-rdma-server nfs-rdma-client nfs-rdma-tools libnfsrdma1 libnfsrdma-dev nfs-rdma-doc)
work=$(mktemp -d "${TMPDIR:-/tmp}/nfs-rdma-packages.XXXXXX")
trap 'rm -rf "$work"' EXIT

cannot_run() {
    if [[ ${CI:-} == true ]]; then die "$*"; fi
    warn "left out: $*"
    left_out+=("$part")
    return 0
}

# copy_tree DIR: this tree as it is now, without what git ignores.
copy_tree() {
    rm -rf "$1"
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
    done | tar -c --null -T - | tar -x -C "$1"
}

# says PATTERN COMMAND...: its output has it. (grep -q would end the command by SIGPIPE.)
says() {
    local pattern=$1
    shift
    "$@" | grep -E "$pattern" >/dev/null
}

deb() { # PACKAGE: its file
    local found
    found=$(find "$out" -maxdepth 1 -name "$1_${version}_*.deb")
    [[ -n $found ]] || die "$1 is not built: tests/packages/packages.sh --only build"
    echo "$found"
}

# --- quick ----------------------------------------------------------------------------------------

same_version() { [[ $2 == "$version" ]] || die "$1 has version '$2', CMakeLists.txt $version"; }

part_quick() {
    local tree=$work/nfs-rdma-$version package missing=()
    same_version debian/changelog "$(dpkg-parsechangelog -S Version)"
    same_version config/packages/nfs-rdma.spec \
        "$(rpmspec -q --qf '%{VERSION}\n' config/packages/nfs-rdma.spec | sort -u)"
    rpmspec -P config/packages/nfs-rdma.spec >"$work/spec"
    if grep -n '%{' "$work/spec"; then die "macros that are not known are left in the spec"; fi

    # A machine that scripts/install-deps has prepared can build packages.
    dpkg-checkbuilddeps
    while read -r package; do
        grep -q "^[a-z]* *| $package " scripts/install-deps || missing+=("$package")
    done < <(sed -n '/^Build-Depends:/,/^[A-Z][^ ]*:/{s/^Build-Depends://;/^[A-Z]/d;p}' debian/control |
        tr ',' '\n' | sed -E 's/debhelper-compat/debhelper/;s/^ *([a-z0-9+.-]*).*/\1/' | grep .)
    ((${#missing[@]} == 0)) || die "scripts/install-deps lacks what debian/control asks for: ${missing[*]}"

    copy_tree "$tree"
    (cd "$work" && dpkg-source -b "$tree" >"$work/source.log" 2>&1) || { cat "$work/source.log"; die "dpkg-source"; }
    lintian --allow-root --fail-on error,warning "$work/nfs-rdma_$version.dsc"
    # The sequence of dh, as far as it shows without doing anything.
    (cd "$tree" && dh binary --buildsystem=cmake+ninja --no-act) >"$work/dh.log"
    grep -q dh_missing "$work/dh.log"

    if [[ -x build/release/bin/nfs-rdmad && -x build/release/bin/mount.nfs-rdma && -x build/release/bin/nfs-rdma ]]; then
        share_out "$tree"
    else
        note "build/release is not built: what goes into which package is left out"
    fi
    good "versions, dependencies, source package and spec"
}

# share_out TREE: puts what build/release installs into the packages' folders; dh_missing fails where something has
# no package. Not in two either.
share_out() {
    local tree=$1 triplet twice
    triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
    DESTDIR=$tree/debian/tmp cmake --install build/release --prefix /usr >"$work/install.log" 2>&1 || {
        tail -n 5 "$work/install.log"
        die "cmake --install build/release"
    }
    mkdir "$tree/debian/tmp/usr/lib/$triplet"
    mv "$tree"/debian/tmp/usr/lib/{libnfsrdma.so*,pkgconfig} "$tree/debian/tmp/usr/lib/$triplet/"
    (cd "$tree" && dh_install && dh_missing) >"$work/share.log" 2>&1 || {
        cat "$work/share.log"
        die "not everything has its package (debian/*.install)"
    }
    twice=$(cd "$tree/debian" && for each in "${names[@]}"; do (cd "$each" && find . ! -type d); done | sort | uniq -d)
    [[ -z $twice ]] || die "in two packages: $twice"
}

# --- build ----------------------------------------------------------------------------------------

part_build() {
    local tree=$out/nfs-rdma-$version
    rm -f "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
    # debhelper gives the build a home of its own, where the compiler cache would be empty each time.
    if have ccache; then
        CCACHE_DIR=${CCACHE_DIR:-$(ccache -k cache_dir)}
        export CCACHE_DIR
    fi
    # The place is the same each time, for the cache; build folder and all are new.
    copy_tree "$tree"
    note "DEB_BUILD_OPTIONS=\"$build_options\" dpkg-buildpackage -us -uc -b"
    (cd "$tree" && DEB_BUILD_OPTIONS=$build_options nice -n 10 dpkg-buildpackage -us -uc -b) >"$out/build.log" 2>&1 || {
        tail -n 30 "$out/build.log"
        die "dpkg-buildpackage failed ($out/build.log)"
    }
    rm -rf "$tree"
    (cd "$out" && du -k -- *.deb | sed 's/^/    /') >&2
    good "built"
}

part_lint() {
    lintian --allow-root --fail-on error,warning "$out"/nfs-rdma_"${version}"_*.changes
    good "lintian has nothing to say"
}

# --- contents -------------------------------------------------------------------------------------

part_contents() {
    local each file twice unpacked=$work/unpacked
    mkdir -p "$unpacked"
    for each in "${names[@]}"; do dpkg-deb -x "$(deb "$each")" "$unpacked/$each"; done
    twice=$(for each in "${names[@]}"; do (cd "$unpacked/$each" && find . ! -type d); done | sort | uniq -d)
    [[ -z $twice ]] || die "in two packages: $twice"
    for file in server/usr/sbin/nfs-rdmad client/usr/sbin/mount.nfs-rdma tools/usr/bin/nfs-rdma; do
        file=$unpacked/nfs-rdma-$file
        says BIND_NOW readelf -d "$file" || die "$file: not linked with -z now"
        says 'Type:.*DYN' readelf -h "$file" || die "$file: no PIE"
        says __stack_chk_fail readelf -W --dyn-syms "$file" || die "$file: no stack protector"
        says '_chk@GLIBC' readelf -W --dyn-syms "$file" || die "$file: no FORTIFY_SOURCE"
    done
    # Each program has its manual page in its package.
    for each in server client tools; do
        while read -r file; do
            compgen -G "$unpacked/nfs-rdma-$each/usr/share/man/man[18]/$(basename "$file").[18].gz" >/dev/null ||
                die "$file has no manual page in nfs-rdma-$each"
            [[ -e $unpacked/nfs-rdma-$each/usr/share/bash-completion/completions/$(basename "$file") ||
                -L $unpacked/nfs-rdma-$each/usr/share/bash-completion/completions/$(basename "$file") ]] ||
                die "$file has no completion in nfs-rdma-$each"
        done < <(find "$unpacked/nfs-rdma-$each/usr" -path '*bin/*' ! -type d)
    done
    [[ $(dpkg-deb --ctrl-tarfile "$(deb nfs-rdma-server)" | tar -xO ./conffiles | sort | xargs) == \
        "/etc/nfs-rdma.exports /etc/rdma/rdma.conf" ]] || die "other conffiles than expected"
    file=$(find "$unpacked/libnfsrdma1" -name 'libnfsrdma.so.1' -type l)
    says 'SONAME.*\[libnfsrdma.so.1\]' readelf -d "$file" || die "the library's SONAME"
    # Nothing of ours but the interface.
    each=$(readelf -W --dyn-syms "$file" | awk '$7 != "UND" && $5 != "LOCAL" && NR > 3 { print $8 }' |
        grep -vE '@@?NFSRDMA_1$|^NFSRDMA_1$' || :)
    [[ -z $each ]] || die "names without a version in the library: $each"
    grep -rq '^ExecReload=/usr/bin/nfs-rdma reload' "$unpacked/nfs-rdma-server" || die "ExecReload is not the tool of the packages"
    good "contents"
}

# --- library --------------------------------------------------------------------------------------

part_library() {
    local each place=$work/library daemon port tcp_port url
    for each in libnfsrdma1 libnfsrdma-dev nfs-rdma-server; do dpkg-deb -x "$(deb "$each")" "$place"; done
    each=$(dirname "$(find "$place" -name nfsrdma.pc)")
    export PKG_CONFIG_PATH=$each
    # Not -I of this tree: what is included is what users get.
    cp tests/interop/libnfsrdma_c.c tests/interop/libnfsrdma_operations.cc "$work/"
    # shellcheck disable=SC2046  # words
    gcc -Wall -Werror -o "$work/c" "$work/libnfsrdma_c.c" $(pkg-config --cflags --libs nfsrdma)
    # shellcheck disable=SC2046
    g++ -std=c++20 -Wall -Werror -o "$work/cc" "$work/libnfsrdma_operations.cc" $(pkg-config --cflags --libs nfsrdma)
    says 'NEEDED.*libnfsrdma.so.1' readelf -d "$work/c"
    # shellcheck source=../interop/free_port.sh
    . tests/interop/free_port.sh
    port=$(free_port) tcp_port=$(free_port $((port + 1)))
    mkdir -p "$work"/export/{c,cc}
    : >"$work/ready"
    "$place/usr/sbin/nfs-rdmad" --foreground -e "$work/export:rw,insecure,no_root_squash" --listen 127.0.0.1 \
        --port "$port" --tcp-port "$tcp_port" --state-dir "$work/state" --control "$work/control.sock" \
        >"$work/ready" 2>"$work/server.log" &
    daemon=$!
    for ((each = 0; each < 100; each++)); do
        if grep -q '^ready' "$work/ready"; then break; fi
        sleep 0.1
    done
    url=nfs://127.0.0.1:$port$work/export
    export LD_LIBRARY_PATH=${PKG_CONFIG_PATH%/pkgconfig}
    for each in c cc; do "$work/$each" "$url/$each?tcpport=$tcp_port&fabric=iwarp&vers=4.2" 4.2; done
    unset LD_LIBRARY_PATH
    kill "$daemon"
    wait "$daemon"
    good "programs in C and C++ with the packages' library and server"
}

# --- a bare Debian --------------------------------------------------------------------------------

part_chroot() {
    local place=$work/chroot files=() each left
    if ((EUID != 0)) || ! have mmdebstrap; then cannot_run "a chroot needs root and mmdebstrap"; return; fi
    for each in "${names[@]}"; do files+=("$(deb "$each")"); done
    mmdebstrap --quiet --variant=apt "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$place" \
        >"$out/mmdebstrap.log" 2>&1 || { tail -n 5 "$out/mmdebstrap.log"; die "mmdebstrap failed"; }
    # No compiler and no headers of others: libnfsrdma-dev needs none.
    mkdir "$place/debs"
    cp "${files[@]}" "$place/debs/"
    download_packages "$place/var/lib/dpkg/status" "$work/debs" no "${files[@]}"
    find "$work/debs" -name '*.deb' -exec cp {} "$place/debs/" ';'
    snapshot() { (cd "$place" && find . -xdev ! -path './proc*' ! -path './var/lib/dpkg*' ! -path './var/log*' \
        ! -path './debs*' ! -path './var/cache*' ! -path './var/lib/apt*' | sort); }
    snapshot >"$work/before"
    in_place() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$place" "$@"; }
    in_place sh -c 'apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends install /debs/*.deb' >"$out/chroot.log" 2>&1 ||
        { tail -n 20 "$out/chroot.log"; die "installing in the chroot failed"; }
    for each in nfs-rdmad mount.nfs-rdma mount.fuse.nfs-rdma nfs-rdma; do
        says "${version//./\\.}" in_place "$each" --version
        in_place "$each" --help >/dev/null
    done
    says 'nothing is exported' in_place nfs-rdmad --check-config
    in_place nfs-rdma doctor --list >/dev/null
    # The description and every manual page are there.
    for each in man1/nfs-rdma.1 man8/nfs-rdmad.8 man8/mount.nfs-rdma.8 man8/mount.fuse.nfs-rdma.8 man5/rdma.conf.5 \
        man5/nfs-rdma.exports.5 man3/libnfsrdma.3 man7/nfs-rdma-linux.7; do
        [[ -e $place/usr/share/man/$each.gz ]] || die "no $each.gz"
    done
    [[ -L $place/etc/systemd/system/multi-user.target.wants/nfs-rdma.service ]] || die "the service is not enabled"
    [[ -z $(in_place dpkg --verify "${names[@]}") ]] || die "dpkg --verify has something to say"
    in_place apt-get -q -y -o Dpkg::Use-Pty=0 purge "${names[@]}" >>"$out/chroot.log" 2>&1
    in_place apt-get -q -y -o Dpkg::Use-Pty=0 --purge autoremove >>"$out/chroot.log" 2>&1
    snapshot >"$work/after"
    left=$(comm -13 "$work/before" "$work/after" | grep -E 'nfs-?rdma|/rdma' || :)
    [[ -z $left ]] || die "left behind by the purge: $left"
    good "a bare Debian: installed, run, purged"
}

# --- the guest ------------------------------------------------------------------------------------

# next_version DIR: the same packages as a later version, with other samples of the conffiles.
next_version() {
    local each place=$work/next control
    mkdir -p "$1"
    for each in "${names[@]}"; do
        rm -rf "$place"
        dpkg-deb -R "$(deb "$each")" "$place"
        control=$place/DEBIAN/control
        sed -i -E "s/^Version: .*/Version: $version+next/; s/\\(= $version\\)/(= $version+next)/g" "$control"
        if [[ $each == nfs-rdma-server ]]; then
            echo '# Of the later version.' | tee -a "$place/etc/rdma/rdma.conf" >>"$place/etc/nfs-rdma.exports"
        fi
        dpkg-deb --root-owner-group -Znone -b "$place" "$1/${each}_next.deb" >/dev/null
    done
}

# stage_guest DIR RECOMMENDS: the packages, and what the guest's image lacks for them.
stage_guest() {
    local each files=()
    mkdir -p "$1"/{debs,now}
    for each in "${names[@]}"; do files+=("$(deb "$each")"); done
    cp "${files[@]}" "$1/now/"
    guest_status "$work/status"
    download_packages "$work/status" "$1/debs" "$2" "${files[@]}"
}

# in_guest DIR OPTIONS... -- COMMAND...: with systemd as process 1.
in_guest() {
    local lab=${LAB:-$root/scripts/vm} stage=$1 status=0
    shift
    "$lab/lab" run -S -d "$stage" -t 1500 -k "$stage/console.log" "$@" || status=$?
    if [[ -n $keep ]]; then
        mkdir -p "$keep"
        cp "$stage"/*.log "$keep/" 2>/dev/null || :
    fi
    ((status == 0)) || die "the packages in the guest: failed ($status)"
}

part_guest() {
    local lab=${LAB:-$root/scripts/vm} stage=$work/guest
    "$lab/lab" prepare >&2 || { cannot_run "the kernel lab could not be prepared"; return; }
    stage_guest "$stage" no
    next_version "$stage/next"
    cp tests/interop/lab_service_steps.sh tests/packages/guest_steps.sh "$stage/"
    printf 'set -euo pipefail\n. /host/lab_service_steps.sh\n. /host/guest_steps.sh\nrun_packages\n' >"$stage/guest.sh"
    in_guest "$stage" -- bash guest.sh
    good "a machine with systemd: installed, upgraded, removed, reinstalled and purged while in use"
}

part_readme() {
    local lab=${LAB:-$root/scripts/vm} stage=$work/readme
    "$lab/lab" prepare >&2 || { cannot_run "the kernel lab could not be prepared"; return; }
    # What apt-get takes along for somebody who names the packages alone.
    stage_guest "$stage" yes
    (cd "$stage/debs" && dpkg-scanpackages -m . >Packages 2>/dev/null)
    cp README.md tests/packages/readme_steps.py "$stage/"
    in_guest "$stage" -n none -m 3072 -s 2048 -- python3 readme_steps.py README.md
    good "a bare machine: README.md as it stands"
}

# --- rpm ------------------------------------------------------------------------------------------

part_rpm() {
    local top=$out/rpm tree=$work/nfs-rdma-$version
    rm -rf "$top"
    mkdir -p "$top/SOURCES"
    copy_tree "$tree"
    tar -C "$work" -czf "$top/SOURCES/nfs-rdma-$version.tar.gz" "nfs-rdma-$version"
    # Debian's RPM database has none of the dependencies. find-debuginfo is another package's.
    nice -n 10 rpmbuild -bb --nodeps --define "_topdir $top" --define 'debug_package %{nil}' \
        config/packages/nfs-rdma.spec >"$out/rpm.log" 2>&1 || { tail -n 30 "$out/rpm.log"; die "rpmbuild failed ($out/rpm.log)"; }
    find "$top/RPMS" -name '*.rpm' | sort | while read -r each; do
        note "$(du -k "$each" | cut -f1) KB $(basename "$each"): $(rpm -qlp "$each" 2>/dev/null | wc -l) files"
    done
    (($(find "$top/RPMS" -name '*.rpm' | wc -l) == 6)) || die "not six RPM packages"
    rm -rf "$top/BUILD" "$top/BUILDROOT"
    good "rpmbuild -bb --nodeps"
}

left_out=()
for part in "${parts[@]}"; do
    step "$part"
    "part_$part"
done
((${#left_out[@]} == 0)) || warn "left out: ${left_out[*]}"
good "packages: ${parts[*]}"
