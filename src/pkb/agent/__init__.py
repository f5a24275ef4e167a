"""Lets a model work on a kernel by itself: mini-swe-agent drives it, in a folder and a sandbox of its own.

`author` sets up an attempt and takes the candidate from its folder; `mini_swe` is mini-swe-agent with our model and our
shell; `shell` sends the agent's commands to `confined_shell`, a process in a sandbox; `judge_socket` judges the kernels
that `client`, a program in the folder, sends.
"""
