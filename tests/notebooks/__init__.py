"""The notebooks run."""
