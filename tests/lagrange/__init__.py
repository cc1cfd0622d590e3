"""Tests of fieldcorr.lagrange."""
