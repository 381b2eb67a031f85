"""The modules of tests/audit/audit_transformers.py, whose docstring has the overview."""
