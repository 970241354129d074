#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the captures on which wire.t compares what leaves the ports with what testpmd sends.

  make_wire_captures.py network FILE    frames that a network carries
  make_wire_captures.py liars FILE      frames that lie about their lengths
  make_wire_captures.py cut FILE        frames that are cut short

Prints how many frames the capture holds: 255 at the most, one burst, because testpmd's icmpecho
never ends a burst of more. Left out is only what testpmd itself does not define: where it would
read bytes behind the end of a frame.
"""
import random
import struct
import sys

UDP, TCP, ICMP, ICMPV6, SCTP, IPIP, GRE = 17, 6, 1, 58, 132, 4, 47
DST, SRC = bytes.fromhex('0290a0b0c0d0'), bytes.fromhex('0211223344a5')
A4, B4 = bytes([10, 1, 2, 3]), bytes([192, 0, 2, 77])
A6 = bytes.fromhex('20010db8000000010000000000000a01')
B6 = bytes.fromhex('20010db8000000020000fffffffffffe')
VLAN, QINQ, OLD_QINQ = 0x8100, 0x88a8, 0x9100
dice = random.Random(22)


def data(n):
    return bytes(dice.randrange(256) for _ in range(n))


def cksum(b):
    b += b'\0' * (len(b) & 1)
    total = sum(struct.unpack('!%dH' % (len(b) // 2), b))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ether(kind, payload, tags=(), pad=True):
    head = DST + SRC + b''.join(struct.pack('!HH', t, 0x6000 | 7 + i) for i, t in enumerate(tags))
    frame = head + struct.pack('!H', kind) + payload
    return frame + data(max(0, 60 - len(frame))) if pad else frame


def ipv4(proto, payload, tags=(), options=b'', frag=0, ihl=None, length=None, version=4,
         ends=A4 + B4, pad=True, right=False):
    size = 20 + len(options)
    head = bytearray(struct.pack('!BBHHHBBH', version << 4 | (size // 4 if ihl is None else ihl),
                     dice.randrange(256), size + len(payload) if length is None else length,
                     dice.randrange(65536), frag, 63, proto, dice.randrange(65536)) + ends + options)
    if right:
        head[10:12] = b'\0\0'
        head[10:12] = struct.pack('!H', cksum(bytes(head)))
    return ether(0x0800, bytes(head) + payload, tags, pad)


def ipv6(proto, payload, tags=(), length=None, pad=True):
    head = struct.pack('!IHBB', 0x60012345, len(payload) if length is None else length, proto, 64)
    return ether(0x86dd, head + A6 + B6 + payload, tags, pad)


def udp(n, check=None, ports=(1234, 5678), body=None):
    body = data(n) if body is None else body
    check = dice.randrange(1, 65536) if check is None else check
    return struct.pack('!HHHH', *ports, 8 + len(body), check) + body


def tcp(n, options=b''):
    return struct.pack('!HHIIBBHHH', 443, 50000, dice.getrandbits(32), dice.getrandbits(32),
                       (20 + len(options)) // 4 << 4, 0x18, 512, dice.randrange(65536), 0) + \
        options + data(n)


def sctp(n):
    return struct.pack('!HHII', 36412, 36412, 7, dice.getrandbits(32) | 1) + data(n)


def icmp(n, kind=8, code=0, check=None):
    body = struct.pack('!HH', 99, dice.randrange(65536)) + data(n)
    if check is None:
        check = cksum(struct.pack('!BBH', kind, code, 0) + body)
    return struct.pack('!BBH', kind, code, check) + body


def arp(op=1, hw=1, proto=0x0800, hlen=6, plen=4, tags=(), n=28):
    body = struct.pack('!HHBBH', hw, proto, hlen, plen, op) + SRC + A4 + b'\0' * 6 + B4
    return ether(0x0806, body[:n] + data(max(0, n - 28)), tags)


def zero_sum(tags=()):
    """A datagram whose checksum comes out as 0, which is sent as 0xffff."""
    body = data(30) + b'\0\0'
    rest = struct.pack('!HHHH', 1234, 5678, 8 + len(body), 0) + body
    value = cksum(A4 + B4 + struct.pack('!HH', UDP, len(rest)) + rest)
    return ipv4(UDP, udp(0, 1, body=body[:-2] + struct.pack('!H', value)), tags)


def layers(tags):
    """What a network carries, under the given tags."""
    options = bytes([7, 7, 4, 0, 0, 0, 0, 0])
    yield ipv4(UDP, udp(18), tags)
    yield ipv4(UDP, udp(18, 0), tags)
    yield ipv4(UDP, udp(1), tags)
    yield ipv4(UDP, udp(101), tags, options)
    yield ipv4(TCP, tcp(0), tags)
    yield ipv4(TCP, tcp(333, bytes([1, 1, 8, 10]) + data(8)), tags, right=True)
    yield ipv4(TCP, tcp(3), tags, options)
    yield ipv4(SCTP, sctp(21), tags)
    yield ipv4(ICMP, icmp(56), tags, right=True)
    yield ipv4(ICMP, icmp(0, 0), tags)
    yield ipv4(2, data(8), tags, bytes([0x94, 4, 0, 0]))
    yield ipv4(UDP, udp(64), tags, frag=0x2000)
    yield ipv4(UDP, data(64), tags, frag=0x2008)
    yield ipv4(TCP, data(61), tags, frag=0x0010)
    yield ipv4(ICMP, icmp(40), tags, frag=0x2000)
    yield zero_sum(tags)
    yield ipv6(UDP, udp(18), tags)
    yield ipv6(UDP, udp(18, 0), tags)
    yield ipv6(UDP, udp(77), tags)
    yield ipv6(TCP, tcp(0), tags)
    yield ipv6(TCP, tcp(250, bytes([1, 1, 8, 10]) + data(8)), tags)
    yield ipv6(SCTP, sctp(16), tags)
    yield ipv6(ICMPV6, icmp(40, 128), tags)
    yield ipv6(0, bytes([UDP, 0, 5, 2, 0, 0, 1, 0]) + udp(20), tags)
    yield ipv6(44, struct.pack('!BBHI', UDP, 0, 1, 77) + udp(20), tags)
    yield ipv6(43, bytes([TCP, 2, 4, 0]) + data(20) + tcp(9), tags)
    yield ipv6(60, bytes([UDP, 0, 1, 4, 0, 0, 0, 0]) + udp(5), tags)
    yield ipv6(59, data(8), tags)
    yield arp(tags=tags)
    yield arp(2, tags=tags)
    yield ether(0x88cc, data(46), tags)
    yield ether(46, data(46), tags)


def requests():
    """What icmpecho answers, and what comes close."""
    for change in ({'op': 3}, {'hw': 6}, {'proto': 0x86dd}, {'hlen': 8}, {'plen': 16}, {'n': 46}):
        yield arp(**change)
    for n in (1, 2, 55, 1472):
        yield ipv4(ICMP, icmp(n), right=True)
    for check in (0, 0xffff, 0xf7ff, 0xf800, 0x0800, 0xff00):
        yield ipv4(ICMP, icmp(20, check=check))
    yield ipv4(ICMP, icmp(20, code=1))
    yield ipv4(ICMP, icmp(20, 13))
    yield ipv4(ICMP, icmp(20), options=bytes([1, 1, 1, 0]))
    yield ipv4(ICMP, data(4) + icmp(20), ihl=6)
    for low in range(4):
        for group in (bytes([224, 0, 0, 1]), bytes([239, 1, 2, 3]), bytes([224, 9, 0, low])):
            yield ipv4(ICMP, icmp(9), ends=bytes([10, 0, 0, 4 + low]) + group)


def lengths():
    """Lengths odd and even, to the longest frame."""
    for n in (*range(18, 35), 63, 64, 65, 127, 128, 129, 255, 256, 511, 512, 1023, 1399, 1471):
        yield ipv4(UDP, udp(n))
    yield ipv4(UDP, udp(1472))
    yield ipv4(TCP, tcp(1460))
    yield ipv4(TCP, tcp(1459))
    yield ipv6(UDP, udp(1452))
    yield ipv6(TCP, tcp(1440))
    for fill in (b'\0', b'\xff'):
        yield ipv4(UDP, udp(0, body=fill * 1000))
        yield ipv4(TCP, tcp(0) + fill * 1001)


def tunnels():
    """Nothing inside of a tunnel is touched."""
    inner = ipv4(UDP, udp(20), pad=False)
    yield ipv4(UDP, udp(0, ports=(5, 4789), body=bytes([8, 0, 0, 0, 0, 0, 9, 0]) + inner))
    yield ipv4(UDP, udp(0, 0, (5, 4789), bytes([8, 0, 0, 0, 0, 0, 9, 0]) + inner))
    yield ipv4(UDP, udp(0, ports=(5, 4790), body=bytes([0xc, 0, 0, 1, 0, 0, 9, 0]) + inner[14:]))
    yield ipv4(UDP, udp(0, ports=(5, 6081), body=bytes([0, 0, 0x65, 0x58, 0, 0, 9, 0]) + inner))
    yield ipv4(UDP, udp(0, ports=(5, 2152), body=bytes([0x30, 255, 0, 48, 0, 0, 0, 1]) + inner[14:]))
    yield ipv4(GRE, bytes([0, 0, 8, 0]) + inner[14:])
    yield ipv4(GRE, bytes([0, 0, 0x65, 0x58]) + inner)
    yield ipv4(IPIP, inner[14:])
    yield ipv6(IPIP, inner[14:])
    yield ether(0x8847, bytes([0, 1, 0x41, 64]) + inner[14:])


def liars():
    """Headers that claim other lengths than there are."""
    for proto, body in ((UDP, udp(40)), (TCP, tcp(40)), (SCTP, sctp(40)), (ICMP, icmp(40))):
        for ihl in range(16):
            yield ipv4(proto, body, ihl=ihl)
            yield ipv4(proto, body, ihl=ihl, length=40)
        for length in (0, 7, 19, 20, 21, 24, 26, 27, 28, 36, 37, 38, 60, 1500, 65535):
            yield ipv4(proto, body, length=length)
        for length in (0, 1, 6, 7, 8, 16, 17, 18, 39, 61, 1500, 65535):
            yield ipv6(proto, body, length=length)
        yield ipv4(proto, body, version=6)
        yield ipv4(proto, body, version=0)
    yield ipv4(UDP, udp(20) + data(30), length=48)
    yield ipv6(UDP, udp(20) + data(31), length=28)


def cut():
    """Frames cut short. The bytes testpmd would miss are never looked at or come out the same."""
    for tags in ((), (VLAN,), (QINQ, VLAN)):
        l3 = 14 + 4 * len(tags)
        for proto, body, field in ((UDP, udp(18), 6), (TCP, tcp(6), 16), (SCTP, sctp(14), 8)):
            for at in (0, 10, 20, 26, 27, 28, 29, 33, 36, 37, 38, 39):
                if proto == UDP and at in (26, 27):
                    continue  # half a UDP checksum, which may be 0
                yield ipv4(proto, body, tags, pad=False)[:l3 + at]
            for at in (0, 40, 46, 47, 48, 50, 56, 57, 58, 59, 65):
                if proto == UDP and at in (46, 47):
                    continue
                yield ipv6(proto, body, tags, pad=False)[:l3 + at]
        yield arp(tags=tags)[:l3 + 28]
        yield ipv4(ICMP, icmp(8), tags, pad=False)[:l3 + 22]
        yield ipv4(ICMP, icmp(8), tags, pad=False)[:l3 + 24]
    yield ether(0x88cc, b'', pad=False)
    yield ether(0x88cc, data(1), pad=False)


def network():
    for tags in ((), (VLAN,), (QINQ, VLAN), (VLAN, VLAN), (QINQ, QINQ, VLAN)):
        yield from layers(tags)
    yield ipv4(UDP, udp(20), (OLD_QINQ, VLAN))
    yield arp(tags=(OLD_QINQ,))
    yield from requests()
    yield from lengths()
    yield from tunnels()


def main():
    frames = list({'network': network, 'liars': liars, 'cut': cut}[sys.argv[1]]())
    assert len(frames) <= 255
    with open(sys.argv[2], 'wb') as f:
        f.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i, frame in enumerate(frames):
            f.write(struct.pack('<IIII', i, 0, len(frame), len(frame)) + frame)
    print(len(frames))


if __name__ == '__main__':
    main()
