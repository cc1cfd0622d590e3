"""What objects look like in a notebook: short HTML with the array drawn inline as SVG.

Nothing but the standard library and numpy is needed, so that stores and duels stay light.
"""
