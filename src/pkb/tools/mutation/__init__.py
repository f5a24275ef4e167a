"""Mutation testing of problems: change a reference's source in one place; the judge must reject the result.

A change that a careless author could make is an operator, one module of `operators/`. `mutants.py` applies them to a
problem's source, `runner.py` has the judge compare what each mutant returns, `campaign.py` does so for many problems.
"""
