# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small training with TensorFlow and Horovod, to copy from: docs/launching.md, "TensorFlow", has the commands.

It uses no Keras: Horovod 0.28.1 knows Keras 2 only, and TensorFlow 2.16 and later have Keras 3.
At the end it compares the weights of all ranks, and ends with exit code 3 if they differ or if nothing was learned.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small model with TensorFlow and Horovod.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32, help="samples in each step of a rank")
    parser.add_argument("--samples", type=int, default=1536, help="samples of an epoch, divided among the ranks")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait in each epoch, to watch the job")
    return parser.parse_args()


class Model(tf.Module):
    """Two layers. Different on each rank at first: the broadcast gives all ranks the weights of rank 0."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = tf.random.Generator.from_seed(seed)
        self.first = tf.Variable(generator.normal([16, 64]) / 4)
        self.second = tf.Variable(generator.normal([64, 4]) / 8)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.tanh(x @ self.first) @ self.second


def data(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """The same on every rank."""
    generator = np.random.default_rng(7)
    x = generator.standard_normal((samples, 16), dtype=np.float32)
    rule = generator.standard_normal((16, 4), dtype=np.float32)
    return x, np.tanh(x @ rule)


def train(options: argparse.Namespace) -> tuple[Model, float, float]:
    model = Model(hvd.rank())
    hvd.broadcast_variables(model.trainable_variables, root_rank=0)
    x, y = data(options.samples)
    print(f"rank {hvd.rank()} of {hvd.size()} begins at epoch 0", flush=True)
    first = last = 0.0
    for epoch in range(options.epochs):
        # The same order on every rank, and each takes its own part of it. As many steps on all: the ranks wait for
        # each other in each of them.
        order = np.random.default_rng(epoch).permutation(options.samples)
        mine = order[: options.samples // hvd.size() * hvd.size()].reshape(-1, hvd.size())[:, hvd.rank()]
        losses = []
        for begin in range(0, len(mine), options.batch_size):
            batch = mine[begin : begin + options.batch_size]
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(tf.constant(x[batch])) - tf.constant(y[batch])))
            tape = hvd.DistributedGradientTape(tape)  # Its gradients are the mean of those of all ranks.
            gradients = tape.gradient(loss, model.trainable_variables)
            for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
                variable.assign_sub(0.1 * gradient)
            losses.append(float(loss))
        last = float(hvd.allreduce(tf.constant(np.mean(losses)), name="loss", op=hvd.Average))
        first = first or last
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1} loss {last:.5f} ranks {hvd.size()}", flush=True)
        time.sleep(options.pause)
    return model, first, last


def compare(model: Model) -> tuple[str, bool]:
    """A hash of the weights of this rank, bit by bit, and whether all ranks have the same weights."""
    mine = np.concatenate([variable.numpy().ravel() for variable in model.trainable_variables])
    everybody = hvd.allgather(tf.constant(mine[np.newaxis]), name="weights").numpy()
    return hashlib.sha256(mine.tobytes()).hexdigest()[:16], all(np.array_equal(one, mine) for one in everybody)


def main() -> int:
    options = arguments()
    hvd.init()
    # Each rank sees its own GPU only; without one nothing changes.
    cards = tf.config.list_physical_devices("GPU")
    if cards:
        tf.config.set_visible_devices(cards[hvd.local_rank()], "GPU")
    model, first, last = train(options)
    weights, same = compare(model)
    verdict = f"{'same' if same else 'DIFFERENT'} on {hvd.size()} ranks"
    print(f"rank {hvd.rank()} weights {weights} {verdict}, loss {first:.5f} to {last:.5f}", flush=True)
    hvd.shutdown()
    return 0 if same and last < first else 3


if __name__ == "__main__":
    sys.exit(main())
