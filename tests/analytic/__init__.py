"""Closed forms against independent checks."""
