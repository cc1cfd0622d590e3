"""Tests of stores of earlier versions."""
