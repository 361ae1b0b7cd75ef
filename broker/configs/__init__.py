"""Configuration that changes while the broker runs: followed, described, altered, applied."""
