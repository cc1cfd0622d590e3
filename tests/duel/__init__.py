"""Tests of the duel engines, sessions and journals."""
