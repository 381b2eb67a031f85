"""The features of a call of attention, each as a function that runs it: scripts/draw_features.py
makes a table of them.

A function returns the pairs (got, expected) that must agree, or raises the error of a refusal. Its
docstring is the feature's line in the table, its group and its least torch are arguments of
``feature``. ``call`` has the features of arguments, ``torch_features`` those of torch.
"""
