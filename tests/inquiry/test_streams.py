"""How images become a stream: the order that a folder, a list or a table gives."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from core.errors import ForetellError
from inquiry.assertions.streams import read_streams

# The order


def test_the_order_of_names_counts_numbers_and_a_folder_is_a_stream_without_labels():
    ids = ["b/shot10.png", "a/shot9.png", "b/shot2.png", "a/shot1.png"]
    assert read_streams("name", ids, labelled=True).rows == ((3, 2, 1, 0),)
    apart = read_streams("name", [name.removesuffix(".png") for name in ids], labelled=False)
    assert (apart.names, apart.rows) == (("b", "a"), ((2, 0), (3, 1)))
    assert apart.describe_places().values.tolist() == [["b", 2], ["a", 2], ["b", 1], ["a", 1]]


@pytest.mark.parametrize(
    ("orders", "expected"),
    [
        ((10, 9, 1), ((2, 1, 0),)),
        (("2024-05-01 12:30", "2024-05-01T09:00:00", "2024-04-30"), ((2, 1, 0),)),
        ((-0.5, 1e3, 20), ((0, 2, 1),)),
    ],
)
def test_a_table_orders_by_numbers_or_times(tmp_path, orders, expected):
    ids = ["x", "y", "z"]
    file = tmp_path / "order.csv"
    pd.DataFrame({"order": orders, "image": ids}).iloc[::-1].to_csv(file, index=False)
    assert read_streams(str(file), ids, labelled=True).rows == expected
    pd.DataFrame({"order": orders, "image": ids, "stream": ["p", "q", "p"]}).to_csv(file, index=False)
    streams = read_streams(str(file), ids, labelled=True)
    assert (streams.names, sorted(len(rows) for rows in streams.rows)) == (("p", "q"), [1, 2])


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ("name", r"^The file name of x has no number.*number the files, or give --order a CSV file"),
        ("nowhere.csv", r"^There is no file nowhere\.csv: give --order name, or a CSV file\.$"),
        ("image,order\n", r"does not list x: list exactly the images"),
        ("image,order\nx,1\ny,2\nz,3\n", r"lists z, which is not among the images"),
        ("image,order\nx,1\nx,2\n", r"names x twice: give each image one line"),
        ("image,order\nx,1\ny,1\n", r"^x and y are at the same place of a stream: give --order a CSV file"),
        ("image,order\nx,1\ny,\n", r"order must be a number in every line, or .* and '' is not"),
        ("image,order\nx,first\ny,second\n", r"order must be a number .* and 'first' is not"),
        ("image,order\nx,1\ny,inf\n", r"and 'inf' is not"),
        ("image,order\nx,1\ny,2024-05-01\n", r"and '2024-05-01' is not"),
        ("image,when\nx,1\ny,2\n", r"has no column order: give columns image, order and perhaps stream"),
        ("", r"is empty\. Export it again\.$"),
    ],
)
def test_a_wrong_order_is_one_sentence(order, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if order != "name" and not order.endswith(".csv"):
        Path("order.csv").write_text(order)
        order = "order.csv"
    with pytest.raises(ForetellError, match=sentence):
        read_streams(order, ["x", "y"], labelled=False)


def test_two_files_of_one_number_are_not_put_into_an_order_by_chance():
    with pytest.raises(ForetellError, match=r"^a/1\.png and b/01\.jpg are at the same place of a stream"):
        read_streams("name", ["a/1.png", "b/01.jpg"], labelled=True)
