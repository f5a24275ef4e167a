"""row: 39
tries: runs code that it puts together from its surroundings
expect: REJECTED runs-text
unscreened: WRONG values
"""

import os

text = "def solution(tensor): return tensor * " + os.environ["WORLD_SIZE"]
exec(text)
