"""Tests of the simulated experiments."""
