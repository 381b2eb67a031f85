"""Conversions between the layouts of official modules and [batch, heads, rows, columns]."""


def split(x, heads):
    """[batch, length, heads * columns] -> [batch, heads, length, columns]."""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def merge(x):
    """[batch, heads, length, columns] -> [batch, length, heads * columns]."""
    return x.transpose(1, 2).flatten(2)


def split_time_first(x, heads):
    """[length, batch, heads * columns] -> [batch, heads, length, columns]."""
    return split(x.transpose(0, 1), heads)


def merge_time_first(x):
    """[batch, heads, length, columns] -> [length, batch, heads * columns]."""
    return merge(x).transpose(0, 1)
