#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
#
# fake_peer.py ROLE SCRIPT...: a peer that does not behave. ROLE is "listen",
# which prints its port first, or the port of a server. Each word of SCRIPT is
#   hello:SERVICE    a hello of this version; hello:SERVICE,KEY=VALUE... with others
#   frame:KIND[,KEY=VALUE]...  a frame; a VALUE that is no JSON is a text
#   json:TEXT        this text behind its length
#   hex:BYTES        these bytes
#   read:N           N bytes from the other side are awaited
#   fin, close       our half is ended; the connection is
#   stay             until the other side closes the connection
#   hear             the same, and prints the bytes that come
import json
import socket
import struct
import sys


def frame(text):
    data = text.encode()
    return struct.pack(">I", len(data)) + data


def value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def fields(words):
    return {key: value(text) for key, _, text in (word.partition("=") for word in words)}


def act(peer, word):
    verb, _, rest = word.partition(":")
    first, *others = rest.split(",")
    if verb == "hello":
        hello = {"kind": "hello", "protocol_min": 3, "protocol_max": 3,
                 "service": first, "version": "9.9"}
        peer.sendall(frame(json.dumps({**hello, **fields(others)})))
    elif verb == "frame":
        peer.sendall(frame(json.dumps({"kind": first, **fields(others)})))
    elif verb == "json":
        peer.sendall(frame(rest))
    elif verb == "hex":
        peer.sendall(bytes.fromhex(rest))
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
