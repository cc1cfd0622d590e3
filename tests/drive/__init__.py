"""Tests of contact currents."""
