# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lab_common.sh: what the lab cases share. Source it from tests/interop/lab_NAME.sh.
#
#   LAB      folder with another `lab` than scripts/vm
#   PRESET   whose programs run (default release); BIN names another folder of programs
# shellcheck source=../../scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
lab=${LAB:-$root/scripts/vm}
# shellcheck disable=SC2034  # for the cases
bin=${BIN:-$root/build/${PRESET:-release}/bin}

# A case that cannot run says why. With CI=true that is a failure (decisions.md 25).
cannot_run() {
    if [[ ${CI:-} == true ]]; then die "$*"; fi
    warn "left out: $*"
    exit 77
}
[[ -x $lab/lab ]] || cannot_run "no kernel lab at $lab (LAB=...)"
# Returns at once when the image is there.
"$lab/lab" prepare >&2 || cannot_run "the kernel lab could not be prepared"

# stage PROGRAM...: puts programs and the libraries that the guest lacks into a fresh $stage, which
# becomes /host in the guest. The guest runs the same Debian release, so that libc, the loader and
# rdma-core are its own (providers are plug-ins that must fit the library).
stage=$(mktemp -d "${TMPDIR:-/tmp}/nfs-rdma-case.XXXXXX")
trap 'rm -rf "$stage"' EXIT
stage() {
    local program library
    mkdir -p "$stage/lib"
    for program in "$@"; do
        [[ -x $program ]] || cannot_run "$program is not built"
        cp "$program" "$stage/"
        while read -r library; do
            case ${library##*/} in
                libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | ld-linux* | libibverbs* | librdmacm*) ;;
                *) cp -n "$library" "$stage/lib/" ;;
            esac
        done < <(ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }')
    done
}

# in_guest SECONDS SCRIPT [LAB_OPTION...]: runs SCRIPT (bash text) in a fresh guest in $stage.
in_guest() {
    local limit=$1 script=$2
    shift 2
    printf 'set -euo pipefail\nexport LD_LIBRARY_PATH=/host/lib\n%s\n' "$script" >"$stage/guest.sh"
    "$lab/lab" run -d "$stage" -t "$limit" "$@" -- bash guest.sh
}
