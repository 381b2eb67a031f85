"""The modules of scripts/audit_transformers.py, whose docstring has the overview."""
