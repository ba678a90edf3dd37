#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# fake_peer.py ROLE SCRIPT...: a peer that does not behave. ROLE is "listen",
# which prints its port first, or the port of a server. Each word of SCRIPT is
#   hello:SERVICE    a HELLO of this version
#   hex:BYTES        these bytes
#   frame:KIND:HEX   a frame of this kind with this payload
#   read:N           N bytes from the other side are awaited
#   fin, close       our half is ended; the connection is
#   stay             until the other side closes the connection
#   hear             the same, and prints the bytes that come
import socket
import struct
import sys


def frame(kind, payload, version=2):
    return struct.pack(">IHHII", 0x44515249, version, kind, len(payload), 0) + payload


def act(peer, word):
    verb, _, rest = word.partition(":")
    if verb == "hello":
        peer.sendall(frame(1, struct.pack(">HH", int(rest), 3) + b"9.9"))
    elif verb == "hex":
        peer.sendall(bytes.fromhex(rest))
    elif verb == "frame":
        kind, _, payload = rest.partition(":")
        peer.sendall(frame(int(kind), bytes.fromhex(payload)))
    elif verb == "read":
        left = int(rest)
        while left > 0:
            data = peer.recv(left)
            if not data:
                break
            left -= len(data)
    elif verb == "fin":
        peer.shutdown(socket.SHUT_WR)
    elif verb == "close":
        peer.close()
    elif verb == "stay":
        while peer.recv(65536):
            pass
    elif verb == "hear":
        while data := peer.recv(65536):
            sys.stdout.buffer.write(data)
            sys.stdout.flush()


def main():
    if sys.argv[1] == "listen":
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        peer, _ = listener.accept()
    else:
        peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    try:
        for word in sys.argv[2:]:
            act(peer, word)
    except (ConnectionResetError, BrokenPipeError):
        pass


main()
