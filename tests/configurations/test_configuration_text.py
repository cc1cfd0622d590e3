"""Names and ids of configurations: both ways, and strict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fieldcorr.configurations.text import (
    configuration_ids,
    format_configuration,
    parse_configuration,
)
from fieldcorr.errors import ConfigurationError

NAMES = tuple(str(e) for e in range(16))
rows = hnp.arrays(
    np.int8, st.tuples(st.integers(0, 20), st.integers(1, 39)), elements=st.integers(-1, 1)
)


def test_text_of_the_documented_example() -> None:
    polarity = parse_configuration("0- 5+ 11+", NAMES)
    assert polarity.dtype == np.int8
    assert polarity[[0, 5, 11]].tolist() == [-1, 1, 1]
    assert np.count_nonzero(polarity) == 3


def test_contacts_may_be_typed_in_any_order_and_with_any_spaces() -> None:
    polarity = parse_configuration("  11+   0-\t5+ ", NAMES)
    assert format_configuration(polarity, NAMES) == "0- 5+ 11+"


def test_case_is_an_ordinary_name() -> None:
    names = ("0", "1", "case")
    assert parse_configuration("0- case+", names).tolist() == [-1, 0, 1]
    assert format_configuration([-1, 0, 1], names) == "0- case+"


def test_id_of_a_known_row() -> None:
    # 2 * 3^0 (cathode 0) + 1 * 3^2 (anode 2)
    assert configuration_ids([[-1, 0, 1]]).tolist() == [11]


@given(rows)
def test_ids_and_rows_are_one_to_one(polarity: np.ndarray) -> None:
    ids = configuration_ids(polarity)
    assert ids.dtype == np.int64
    digits = {0: 0, 1: 1, -1: 2}
    for row, code in zip(polarity.tolist(), ids.tolist(), strict=True):
        assert code == sum(digits[p] * 3**e for e, p in enumerate(row))


@given(rows)
def test_texts_and_rows_are_one_to_one(polarity: np.ndarray) -> None:
    names = [f"c{e}" for e in range(polarity.shape[1])]
    for row in polarity:
        assert np.array_equal(parse_configuration(format_configuration(row, names), names), row)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no contact"),
        ("  ", "names no contact"),
        ("0", "does not end in"),
        ("0- 5", "does not end in"),
        ("0-5+", "unknown contact '0-5'"),
        ("17-", "unknown contact '17'"),
        ("-", "unknown contact ''"),
        ("00-", "unknown contact '00'"),
        ("0- 0+", "'0' twice"),
        ("0- off", "does not end in"),
    ],
)
def test_wrong_text_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(text, NAMES)
    assert said in str(caught.value)
    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [2, -2, 7])
def test_polarity_values_are_checked(value: int) -> None:
    with pytest.raises(ConfigurationError, match="-1, 0 and"):
        configuration_ids([[0, value]])


def test_float_polarity_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="integers"):
        configuration_ids(np.array([[0.0, 1.0]]))


@pytest.mark.parametrize("shape", [(3,), (1, 2, 3)])
def test_shape_is_checked(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match="shape"):
        configuration_ids(np.zeros(shape, np.int8))


def test_ids_need_at_most_39_contacts() -> None:
    with pytest.raises(ConfigurationError, match="40 contacts"):
        configuration_ids(np.zeros((1, 40), np.int8))
