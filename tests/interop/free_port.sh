# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced: `free_port [FROM]` prints a TCP port that nobody uses, FROM or the next one (by default
# somewhere in the range). Below the range from which the kernel takes the ports of outgoing
# connections (32768 on): one of these could take the port while the server is down.
free_port() {
    local p=${1:-$((12000 + RANDOM % 20000))}
    while ss -Htan "sport = :$p" | grep -q .; do p=$((p + 1)); done
    echo "$p"
}
