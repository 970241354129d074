#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare frames that dpdk-sibfwd saved with those that testpmd sent.

  wire_compare.py SAVED FIRST SECOND BURST N [--except NAME=FROM[-TO]]...

SAVED holds N frames sent by two ports in turn, BURST at a time. FIRST and SECOND are what testpmd
sent by the same two ports, at least as many; a port that sends a capture round and round may have
sent one round only in testpmd, where it sent all of it in one burst (--rounds). N of 0: neither
has sent a frame. --except names a field whose bytes FROM up to TO, or to the end of the frame, may
differ.

  wire_compare.py --count CAPTURE       print how many frames a capture holds
"""
import struct
import sys


def read(path):
    """Frames of a capture as both programs write it; a file that ends in a frame counts it not."""
    with open(path, 'rb') as f:
        raw = f.read()
    order = {b'\xd4\xc3\xb2\xa1': '<', b'\x4d\x3c\xb2\xa1': '<'}[raw[:4]]
    frames, at = [], 24
    while at + 16 <= len(raw):
        captured, length = struct.unpack_from(order + 'II', raw, at + 8)
        if captured != length:
            raise SystemExit(f'{path}: frame {len(frames)} is cut to {captured} of {length} bytes')
        if at + 16 + captured > len(raw):
            break
        frames.append(raw[at + 16:at + 16 + captured])
        at += 16 + captured
    return frames


def masked(frame, fields):
    frame = bytearray(frame)
    for start, end in fields:
        stop = len(frame) if end is None else min(end, len(frame))
        if stop > start:
            frame[start:stop] = bytes(stop - start)
    return bytes(frame)


def fields_of(arguments):
    fields = []
    for argument in arguments:
        name, _, where = argument.partition('=')
        start, _, end = where.partition('-')
        fields.append((int(start), int(end) if end else None))
        print(f'excepted: {name}')
    return fields


def differ(i, port, got, want):
    at = next((k for k in range(min(len(got), len(want))) if got[k] != want[k]),
              min(len(got), len(want)))
    print(f'frame {i} of port {port}: {len(got)} bytes, testpmd sends {len(want)}; '
          f'they differ at byte {at}\n  {got.hex()}\n  {want.hex()}')
    return 1


def main():
    if sys.argv[1] == '--count':
        print(len(read(sys.argv[2])))
        return 0
    arguments = sys.argv[1:]
    rounds = '--rounds' in arguments
    if rounds:
        arguments.remove('--rounds')
    saved, ports = read(arguments[0]), [read(arguments[1]), read(arguments[2])]
    burst, n = int(arguments[3]), int(arguments[4])
    if any(a != '--except' for a in arguments[5::2]):
        raise SystemExit(__doc__)
    fields = fields_of(arguments[6::2])
    if len(saved) != n or (n == 0 and any(ports)):
        print(f'{len(saved)} frames saved, not {n}; testpmd sent {[len(p) for p in ports]}')
        return 1
    for i, frame in enumerate(saved):
        port, place = i // burst % 2, i // burst // 2 * burst + i % burst
        sent = ports[port]
        if not rounds and place >= len(sent) or not sent:
            print(f'testpmd sent only {len(sent)} frames by port {port}')
            return 1
        want = sent[place % len(sent)]
        if masked(frame, fields) != masked(want, fields):
            return differ(place, port, frame, want)
    print(f'{n} frames are the same')
    return 0


if __name__ == '__main__':
    sys.exit(main())
