"""Tests of fieldcorr.leadfield."""
