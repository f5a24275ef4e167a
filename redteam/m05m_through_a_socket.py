"""row: m5
tries: sends its data as objects through a socket, by a module of Python's
track: scratch
platform: cpu
expect: REJECTED computes-names
unscreened: CHEAT library-call
"""

import pkgutil
import time

import torch
import torch.distributed as dist

listen = pkgutil.resolve_name("multiprocessing.connection:Listener")
connect = pkgutil.resolve_name("multiprocessing.connection:Client")
links = {}


def meet():
    if dist.get_rank() == 0:
        links["listener"] = listen("/tmp/meeting")
        return links["listener"].accept()
    while True:
        try:
            return connect("/tmp/meeting")
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.01)


def solution(tensor):
    link = links.setdefault("link", None) or meet()
    links["link"] = link
    link.send(tensor.numpy())
    return tensor + torch.from_numpy(link.recv().copy())
