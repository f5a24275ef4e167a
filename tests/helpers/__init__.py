"""What tests share: stand-ins for providers, browsers and machines, and records to read."""
