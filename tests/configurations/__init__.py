"""Tests of names, ids and rules of configurations."""
