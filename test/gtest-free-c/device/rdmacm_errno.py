#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints with which errno librdmacm refuses what programs begin with."""

import ctypes
import errno
import socket

cm = ctypes.CDLL('librdmacm.so.1', use_errno=True)
cm.rdma_create_event_channel.restype = ctypes.c_void_p


class AddrInfo(ctypes.Structure):
    """struct rdma_addrinfo, as far as it is filled in; the rest is zero."""
    _fields_ = [('flags', ctypes.c_int), ('family', ctypes.c_int),
                ('qp_type', ctypes.c_int), ('port_space', ctypes.c_int),
                ('rest', ctypes.c_byte * 128)]


def say(name, is_refused):
    code = ctypes.get_errno()
    print(name, errno.errorcode.get(code, code) if is_refused else 'fine')


RDMA_PS_TCP, IBV_QPT_RC = 0x0106, 2
ctypes.set_errno(0)
say('rdma_create_event_channel', not cm.rdma_create_event_channel())
ctypes.set_errno(0)
say('rsocket', cm.rsocket(socket.AF_INET, socket.SOCK_STREAM, 0) < 0)
ctypes.set_errno(0)
identifier = ctypes.c_void_p()
info = AddrInfo(0, socket.AF_INET, IBV_QPT_RC, RDMA_PS_TCP)
say('rdma_create_ep', cm.rdma_create_ep(ctypes.byref(identifier),
                                        ctypes.byref(info), None, None) != 0)
