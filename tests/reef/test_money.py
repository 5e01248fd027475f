from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reef.money import dollars


@pytest.mark.parametrize(
    ("usd", "said"),
    [
        (0, "$0.00"),
        (12.5, "$12.50"),
        (0.1, "$0.10"),
        (0.099, "$0.099"),
        (0.0042, "$0.0042"),
        (0.00001234, "$0.000012"),
    ],
)
def test_money(usd: float, said: str) -> None:
    assert dollars(usd) == said


@given(st.floats(min_value=1e-12, max_value=1e6))
def test_a_sum_is_never_told_as_nothing(usd: float) -> None:
    told = float(Decimal(dollars(usd)[1:]))
    assert told > 0
    assert abs(told - usd) <= max(0.005, 0.05 * usd)
