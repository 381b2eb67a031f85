"""The parts of scripts/audit_transformers.py, which has the overview."""
