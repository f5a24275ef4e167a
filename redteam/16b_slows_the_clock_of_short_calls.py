"""row: 16
tries: slows the clock in calls that are far shorter than what the judge allows its own clock
timed: yes
platform: cpu
machine: x86_64
expect: CORRECT TIE | CORRECT SLOWER | CHEAT outside-clock
warns: loads-libraries pokes-memory
"""

import ctypes
import mmap
import struct

import torch.distributed as dist

SLOW_CLOCK = bytes.fromhex(
    "56 b8e4000000 0f05 5e"  # push rsi; mov eax, 228; syscall; pop rsi
    "4869 06 00ca9a3b"  # imul rax, [rsi], 1000000000
    "480346 08"  # add rax, [rsi + 8]
    "48c1e8 06"  # shr rax, 6
    "48c706 00000000"  # mov qword [rsi], 0
    "488946 08"  # mov [rsi + 8], rax
    "31c0 c3"  # xor eax, eax; ret
)
WRITABLE = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC

libc = ctypes.CDLL(None)
code = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=WRITABLE)
code.write(SLOW_CLOCK)
target = ctypes.addressof(ctypes.c_char.from_buffer(code))
victim = ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value
page = victim // mmap.PAGESIZE * mmap.PAGESIZE
libc.mprotect(ctypes.c_void_p(page), 2 * mmap.PAGESIZE, WRITABLE)
# mov rax, target; jmp rax
ctypes.memmove(victim, b"\x48\xb8" + struct.pack("<Q", target) + b"\xff\xe0", 12)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
