"""Tests of plots and notebook summaries."""
