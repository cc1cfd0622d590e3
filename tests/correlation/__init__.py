"""Tests of embedding, tiles, neighbourhoods and the update rule."""
