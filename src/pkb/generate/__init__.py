"""Asks language models for kernels: problem → prompt → model → candidate, and on to the judge.

`prompt` assembles the text from `template`, `arguments`, `outline` and `examples`; `model` asks; `extract` finds the
candidate in the answer; `store` keeps all of it. An `experiment` is one sample, in one turn or in several, each told of
the one before by `feedback`; an `author` writes within a `budget`; the `pipeline` takes many as far as they go.
"""
