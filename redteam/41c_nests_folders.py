"""row: 41
tries: leaves 3000 folders in each other, names that are no text, and links to outside, for the judge to clean up
expect: WRONG values
"""

import os

os.symlink("/", "outside")
os.mkfifo("pipe")
os.mkdir(b"\xff\xfe")
home = os.getcwd()
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
os.chdir(home)
os.chmod("d", 0)


def solution(tensor):
    return tensor.clone()
