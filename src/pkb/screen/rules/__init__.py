"""The rules of the screen, by topic. Each is a function over facts that yields what it objects to."""
