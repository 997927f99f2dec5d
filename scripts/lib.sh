# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lib.sh: what the scripts here share. Source it; it sets the error mode, finds the checkout's root
# ($root) and gives the functions below. Progress goes to standard error, results to standard output.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # used by those who source this file
program=$(basename "$0")

# Colours only where a person reads along, and not when asked not to (no-color convention).
if [[ -t 2 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
    c_bold=$'\e[1m' c_red=$'\e[31m' c_green=$'\e[32m' c_yellow=$'\e[33m' c_off=$'\e[0m'
else
    c_bold='' c_red='' c_green='' c_yellow='' c_off=''
fi

step() { printf '%s==> %s%s\n' "$c_bold" "$*" "$c_off" >&2; }
note() { printf '    %s\n' "$*" >&2; }
good() { printf '%s    %s%s\n' "$c_green" "$*" "$c_off" >&2; }
warn() { printf '%s%s: warning: %s%s\n' "$c_yellow" "$program" "$*" "$c_off" >&2; }
fail() { printf '%s%s: %s%s\n' "$c_red" "$program" "$*" "$c_off" >&2; }
die() { fail "$*"; exit 1; }
# A wrong command line: one clear line and the way to the help.
usage_error() { fail "$*"; note "try '$program --help'"; exit 2; }

# need_value "$@": the option in front has a value behind it.
need_value() { (($# >= 2)) || usage_error "$1 needs a value"; }

# The comment block at the top of the calling script is its help.
show_help() { sed -n '2,/^[^#]/{/^# SPDX/d;/^# shellcheck/d;/^#/!d;s/^# \{0,1\}//;p}' "$0"; }

# An unexpected failure names its place instead of ending silently.
trap 'fail "line $LINENO: \"$BASH_COMMAND\" failed ($?)"' ERR
set -E

have() { command -v "$1" >/dev/null 2>&1; }
cores() { nproc 2>/dev/null || echo 2; }

# guest_status FILE: the dpkg status of the lab guest's image, which has to be there.
guest_status() {
    debugfs -R 'cat /var/lib/dpkg/status' "${LAB_DIR:-${TMPDIR:-/tmp}/nfs-rdma-vm-$UID}/root.img" >"$1" 2>/dev/null
    [[ -s $1 ]] || die "the guest's image has no dpkg status"
}

# download_packages STATUS DIR RECOMMENDS NAME|FILE...: into DIR what a machine with that dpkg status lacks for these
# packages, and with RECOMMENDS (yes or no) for what they recommend.
download_packages() {
    local status=$1 dir=$2 recommends=$3 log
    shift 3
    mkdir -p "$dir/partial"
    log=$dir/download.log
    if [[ $recommends == yes ]]; then recommends=--install-recommends; else recommends=--no-install-recommends; fi
    apt-get -q -y -o Dir::State::status="$status" -o Dir::Cache::archives="$dir" -o Debug::NoLocking=1 \
        -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 "$recommends" --download-only install "$@" \
        >"$log" 2>&1 || { tail -n 5 "$log" >&2; die "cannot download: $*"; }
    rm -rf "$dir/partial" "$dir/lock" "$log"
}

# need_deps [GROUP...]: installs what is missing of these groups (quick when nothing is).
need_deps() {
    # It has said what is wrong when it fails.
    "$root/scripts/install-deps" --quiet --only "$(IFS=,; echo "${*:-build,test,run}")" || exit 1
}

# build_preset PRESET [CMAKE_OPTION...] [--only [TARGET...]]: configures (once) and builds
# build/PRESET, or only those targets of it.
build_preset() {
    local preset=$1 targets=() options=()
    shift
    while (($#)) && [[ $1 != --only ]]; do options+=("$1"); shift; done
    if (($#)); then targets=("${@:2}"); fi
    set -- "${options[@]}"
    local dir=$root/build/$preset
    if [[ ! -f $dir/build.ninja || $# -gt 0 ]]; then
        step "configure $preset (build/$preset)"
        (cd "$root" && cmake --preset "$preset" "$@" >"$root/build/$preset.configure.log" 2>&1) || {
            tail -n 30 "$root/build/$preset.configure.log" >&2
            die "cmake --preset $preset failed (build/$preset.configure.log)"
        }
    fi
    step "build $preset"
    if [[ -t 2 ]]; then
        ninja -C "$dir" "${targets[@]}" >&2 || die "the build in build/$preset failed"
    else
        ninja -C "$dir" --quiet "${targets[@]}" >&2 || die "the build in build/$preset failed"
    fi
}

# run_case SECONDS COMMAND...: one case of several that a script runs. Its command and the time it took go to standard
# error, what it says to standard output; a log of its own is kept if it fails. With same_group set it stays in this
# process group, and so ends with it.
failed_cases=()
run_case() {
    local log status=0 started=$SECONDS
    mkdir -p "$root/build/ci"
    log=$root/build/ci/case.$$.log
    note "${*:2}"
    timeout ${same_group:+--foreground} -k 10 "$@" 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
    note "it took $((SECONDS - started)) s"
    if ((status)); then
        failed_cases+=("${*:2}: failed ($status)")
        mv "$log" "$root/build/ci/case.$$.failed.${#failed_cases[@]}"
    fi
    rm -f "$log"
}
# end_cases: shows at the end what failed, where a reader of the last lines sees it, however much the cases behind it
# say. Fails if any did.
end_cases() {
    local number
    ((${#failed_cases[@]})) || return 0
    for ((number = 1; number <= ${#failed_cases[@]}; ++number)); do
        echo "--- ${failed_cases[number - 1]}; its last lines:"
        tail -n $((50 / ${#failed_cases[@]})) "$root/build/ci/case.$$.failed.$number"
        rm "$root/build/ci/case.$$.failed.$number"
    done
    printf '%s\n' "${failed_cases[@]}"
    return 1
}
