"""Images as the network's inputs, decoded ahead on other threads while the network works."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from PIL import Image
from torch import Tensor

from core.network.classifier import Classifier
from core.network.device import chunk_size


def read_batches(
    classifier: Classifier, open_image: Callable[[int], Image.Image], start: int, stop: int
) -> Iterator[Tensor]:
    """Yield inputs (n, C, H, W) of the images ``start`` to ``stop`` (exclusive), in order.

    One batch is decoded ahead on all cores (decoding leaves Python's lock), so memory does not grow with their number.
    """
    size = chunk_size(torch.zeros(classifier.input_shape), classifier.device)
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def read(i: int) -> Tensor:
            return classifier.preprocess(open_image(i))

        def ahead(first: int) -> list[Future[Tensor]]:
            return [pool.submit(read, i) for i in range(first, min(first + size, stop))]

        coming = ahead(start)
        for first in range(start, stop, size):
            ready, coming = coming, ahead(first + size)
            yield torch.stack([image.result() for image in ready])
