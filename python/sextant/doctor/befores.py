"""The arrays that may be queries or keys before their rotation, among the outputs of modules inside
an attention module."""

from __future__ import annotations

from typing import Iterator

import numpy as np


def _heads_last(array: np.ndarray) -> np.ndarray:
    return array.transpose(0, 2, 1, 3)


def _of_rank_4(output: np.ndarray, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    batch, heads, positions, channels = shape
    if output.shape == shape:
        yield output
    if output.shape == (batch, positions, heads, channels):
        yield _heads_last(output)


def _fused(output: np.ndarray, shape: tuple[int, ...], other_heads: int) -> Iterator[np.ndarray]:
    """Queries, keys and values of one projection. other_heads: of keys if the array is of queries,
    and the reverse."""
    batch, heads, positions, channels = shape
    width = output.shape[-1]
    queries, keys = max(heads, other_heads), min(heads, other_heads)
    own = heads * channels
    if width == 3 * own:  # each head's three side by side: GPT-NeoX
        for part in np.moveaxis(output.reshape(batch, positions, heads, 3, channels), 3, 0):
            yield _heads_last(part)
    if width == (queries + 2 * keys) * channels:
        flat = output.reshape(batch, positions, queries + 2 * keys, channels)
        starts = {0, heads, queries}  # one after the other: Phi-3
        for start in sorted(starts):
            if start + heads <= queries + 2 * keys:
                yield _heads_last(flat[:, :, start:start + heads])
        group = queries // keys + 2  # by key head: Falcon
        grouped = output.reshape(batch, positions, keys, group, channels)
        if heads == queries:
            yield _heads_last(grouped[:, :, :, :-2].reshape(batch, positions, heads, channels))
        if heads == keys:
            yield _heads_last(grouped[:, :, :, -2])
            yield _heads_last(grouped[:, :, :, -1])
    elif width > own and width % channels == 0:  # gates and others beside them
        flat = output.reshape(batch, positions, width // channels, channels)
        yield _heads_last(flat[:, :, :heads])
        if width % (heads * channels) == 0:
            by_head = output.reshape(batch, positions, heads, width // own, channels)
            yield _heads_last(by_head[:, :, :, 0])


def _shared_part(output: np.ndarray, shape: tuple[int, ...], part: tuple[int, int] | None
                 ) -> Iterator[np.ndarray]:
    """One rotated part for all heads at the end of a projection, as in latent attention; the other
    channels are NaN, not known."""
    if part is None or part[1] == shape[-1]:
        return
    first, channels = part
    width = output.shape[-1]
    for start in {width - channels, 0}:
        if width >= channels:
            whole = np.full(shape, np.nan)
            whole[..., first:first + channels] = output[:, None, :, start:start + channels]
            yield whole


def befores(outputs: list[np.ndarray], shape: tuple[int, ...], other_heads: int,
            part: tuple[int, int] | None) -> Iterator[np.ndarray]:
    """Candidates of shape [batch, heads, positions, channels], the latest outputs first. part: the
    first channel and the number of channels that rotate, as expected."""
    batch, heads, positions, channels = shape
    for output in reversed(outputs):
        if output.ndim == 4:
            yield from _of_rank_4(output, shape)
        if output.ndim == 3 and output.shape[:2] == (batch, positions):
            if output.shape[-1] == heads * channels:
                yield _heads_last(output.reshape(batch, positions, heads, channels))
            else:
                yield from _fused(output, shape, other_heads)
    for output in reversed(outputs):
        if output.ndim == 3 and output.shape[:2] == (batch, positions):
            yield from _shared_part(output, shape, part)
        if output.ndim == 4 and output.shape[1] == 1 and output.shape[2] == positions:
            yield from _shared_part(output[:, 0], shape, part)
