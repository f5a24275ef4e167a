"""Asks language models for kernels: problem → prompt → model → candidate, and on to the judge.

`prompt` writes the text from `template`, `argument_docs`, `outline` and `examples`; `model` sends it; `extract` finds
the candidate in the answer; `sample_files` stores everything. An `experiment` is one sample, of one turn or of several,
where `feedback` describes each turn to the next one. An `author` writes candidates within a `budget`, and the
`pipeline` runs many experiments at once.
"""
