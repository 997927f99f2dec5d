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

# What lab_quota.sh needs there.
stage_quota_tools() {
    local folder
    have setquota || need_deps test
    folder=$(perl -MQuota -e 'print $INC{"Quota.pm"} =~ s/\/Quota.pm$//r' 2>/dev/null) || need_deps test
    mkdir -p "$stage/perl/auto"
    cp "$folder/Quota.pm" "$stage/perl/"
    cp -r "$folder/auto/Quota" "$stage/perl/auto/"
    cp "$(command -v setquota)" "$(command -v quota)" "$root/tests/interop/lab_quota.sh" "$stage/"
}

# lab_options 'knfsd'|'' ARG...: the options of a case. $keep: where its logs are left. $server: ours,
# or knfsd with --knfsd, where the case has that.
lab_options() {
    local has=$1
    shift
    server=ours keep=''
    while (($#)); do
        case $1 in
            --knfsd)
                [[ $has == knfsd ]] || usage_error "unknown option '$1'"
                server=knfsd
                ;;
            --keep) keep=${2:?--keep needs a folder}; shift ;;
            -h | --help) show_help; exit 0 ;;
            *) usage_error "unknown option '$1'" ;;
        esac
        shift
    done
}
keep_logs() {
    local file
    [[ -n $keep ]] || return 0
    mkdir -p "$keep"
    for file in "$stage"/*.log "$stage"/*.pcap; do
        [[ ! -e $file ]] || cp "$file" "$keep/"
    done
}
# failed WHY...: shows the ends of the logs that there are, and ends.
failed() {
    local log
    for log in dmesg server guest; do
        [[ -s $stage/$log.log ]] || continue
        note "--- $log.log"
        tail -n 60 "$stage/$log.log" >&2
    done
    keep_logs
    die "$@"
}

# in_guest SECONDS SCRIPT [LAB_OPTION...]: runs SCRIPT (bash text) in a fresh guest in $stage.
in_guest() {
    local limit=$1 script=$2
    shift 2
    printf 'set -euo pipefail\nexport LD_LIBRARY_PATH=/host/lib\n%s\n' "$script" >"$stage/guest.sh"
    "$lab/lab" run -d "$stage" -t "$limit" "$@" -- bash guest.sh
}

# check_wire CAPTURE: chunks both ways, no Terminate and nothing malformed in what a case captured; the
# case has a function `failed`.
check_wire() {
    # Without its NFS dissector: that gives up on a READ reply whose data is in a chunk, and with the
    # rest of such a TCP segment tshark loses where the next FPDU begins.
    decode() {
        tshark --disable-protocol nfs -o tcp.reassemble_out_of_order:TRUE -r "$capture" "$@" 2>/dev/null
    }
    count() { decode -Y "$1" -T fields -e frame.number | wc -l; }
    local capture=$1 writes reads rdma_writes read_responses terminates malformed
    writes=$(count 'rpcordma.writes_count > 0') reads=$(count 'rpcordma.reads_count > 0')
    rdma_writes=$(count 'iwarp_rdma.opcode == 0') read_responses=$(count 'iwarp_rdma.opcode == 2')
    terminates=$(count 'iwarp_rdma.opcode == 7')
    malformed=$(decode -Y _ws.malformed | wc -l)
    note "calls with Write chunks $writes, with Read chunks $reads; frames with RDMA Write" \
        "$rdma_writes, with Read Response $read_responses, Terminate $terminates, malformed $malformed"
    ((writes > 0 && reads > 0)) || failed "no chunks on the wire"
    ((rdma_writes > 0 && read_responses > 0)) || failed "no RDMA Writes or Read Responses on the wire"
    ((terminates == 0)) || failed "$terminates Terminates on the wire"
    ((malformed == 0)) || failed "tshark calls $malformed frames malformed"
}
