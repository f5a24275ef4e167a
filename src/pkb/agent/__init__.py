"""Lets a model work on a kernel by itself: mini-swe-agent drives it, in a folder and a sandbox of its own.

`author` sets up an attempt and takes the candidate from it; `driver` is mini-swe-agent with our model and our shell;
`shell` runs its commands inside `jail`; `desk` judges what `client`, a program in the folder, brings.
"""
