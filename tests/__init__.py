"""Tests of fieldcorr; the folders mirror the package."""
