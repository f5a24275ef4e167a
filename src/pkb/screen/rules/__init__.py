"""The rules of the screen, one module per topic. A rule is a function that yields the places it objects to."""
