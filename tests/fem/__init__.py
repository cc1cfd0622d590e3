"""Tests of fieldcorr.fem."""
