"""Tests of the export."""
