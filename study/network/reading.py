"""Batches of a set's images as the network's inputs, decoded ahead on other threads while the network works."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from core.classifier import Classifier
from core.device import chunk_size
from data.types import ImageSet


def batches(classifier: Classifier, images: ImageSet, start: int = 0, stop: int | None = None) -> Iterator[Tensor]:
    """Return inputs (n, C, H, W) of the images ``start`` to ``stop`` (exclusive; None: all), in order.

    One batch is decoded ahead on all cores (decoding leaves Python's lock), so memory does not grow with the set.
    """
    stop = len(images) if stop is None else stop
    size = chunk_size(torch.zeros(classifier.input_shape))
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def read(i: int) -> Tensor:
            return classifier.preprocess(images.open(i))

        def ahead(first: int) -> list[Future[Tensor]]:
            return [pool.submit(read, i) for i in range(first, min(first + size, stop))]

        coming = ahead(start)
        for first in range(start, stop, size):
            ready, coming = coming, ahead(first + size)
            yield torch.stack([picture.result() for picture in ready])
