#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Our iWARP streams through an independent decoder: runs the fabric's contract tests with the pcap
# tap on and looks at what tshark makes of MPA, DDP and RDMAP.
#
#   pcap_check.sh path/to/iwarp_test
set -eu

test_program=$1
for program in tshark mergecap; do
  command -v $program >/dev/null 2>&1 || {
    echo "pcap_check: no $program; scripts/install-deps installs it"
    exit 1
  }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

NFSRDMA_PCAP_DIR=$work "$test_program" --gtest_filter='Iwarp/FabricContract.*' >"$work/log" 2>&1 || {
  tail -n 40 "$work/log"
  echo "pcap_check: the contract tests failed"
  exit 1
}
mergecap -a -w "$work/all" "$work"/*.pcap

# The messages of these tests are not RPC: without this tshark would try to read them as such.
# Ports are ephemeral, and some are known to tshark for other protocols: heuristics go first.
decode() { tshark --disable-protocol rpcordma -o tcp.try_heuristic_first:TRUE -r "$work/all" "$@" 2>/dev/null; }
count() {
  decode -Y "$1" >"$work/counted" || { echo "pcap_check: tshark refuses: $1" >&2; exit 1; }
  wc -l <"$work/counted"
}

malformed=$(count '_ws.malformed')
decode -V >"$work/text"
good_crc=$(awk '/CRC check/ && /Good CRC/ { n++ } END { print n + 0 }' "$work/text")
bad_crc=$(awk '/CRC check/ && !/Good CRC/ { n++ } END { print n + 0 }' "$work/text")
bad_length=$(count 'iwarp_mpa.bad_length')
requests=$(count 'iwarp_mpa.req')
replies=$(count 'iwarp_mpa.rep')
sends=$(count 'iwarp_rdma.opcode == 3')
invalidates=$(count 'iwarp_rdma.opcode == 4')
writes=$(count 'iwarp_rdma.opcode == 0')
read_requests=$(count 'iwarp_rdma.opcode == 1')
read_responses=$(count 'iwarp_rdma.opcode == 2')
terminates=$(count 'iwarp_rdma.opcode == 7')

echo "MPA requests $requests, replies $replies; Sends $sends, with Invalidate $invalidates," \
  "Writes $writes, Read Requests $read_requests, Read Responses $read_responses," \
  "Terminates $terminates; malformed $malformed, good CRC $good_crc, bad CRC $bad_crc, bad length $bad_length"

status=0
for found in "$requests" "$replies" "$sends" "$invalidates" "$writes" "$read_requests" \
  "$read_responses" "$terminates" "$good_crc"; do
  [ "$found" -gt 0 ] || status=1
done
[ "$malformed" -eq 0 ] && [ "$bad_crc" -eq 0 ] && [ "$bad_length" -eq 0 ] || status=1
if [ $status -ne 0 ]; then
  echo "pcap_check: tshark did not understand everything"
  decode -Y '_ws.malformed' | head -n 20
fi
exit $status
