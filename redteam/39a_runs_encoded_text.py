"""row: 39
tries: hides its code in base64
expect: REJECTED runs-text
unscreened: WRONG values
"""

import base64

# def solution(tensor):
#     return tensor * 2
exec(base64.b64decode("ZGVmIHNvbHV0aW9uKHRlbnNvcik6CiAgICByZXR1cm4gdGVuc29yICogMgo="))
