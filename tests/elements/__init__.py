"""Tests of fieldcorr.elements."""
