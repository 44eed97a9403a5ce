"""This file holds the tests of the shapes of decode passes."""

from hypothesis import given
from hypothesis import strategies as st

from miniverl.engines.cached.shapes import FEWEST_ROWS, Shapes


def test_rows_double_from_four_up_to_the_slots():
    shapes = Shapes(slots=24, length=64, coarse=False)
    assert [shapes.rows(live) for live in (1, 4, 5, 8, 9, 16, 17, 24)] == [4, 4, 8, 8, 16, 16, 24, 24]
    assert [shapes.reach(tokens) for tokens in (1, 8, 9, 63, 64)] == [8, 8, 16, 64, 64]


def test_coarse_shapes_are_eight():
    shapes = Shapes(slots=24, length=200, coarse=True)
    assert shapes.every() == [(rows, reach) for rows in (6, 24) for reach in (56, 112, 168, 200)]


@given(st.integers(FEWEST_ROWS, 300), st.integers(1, 200), st.booleans(), st.data())
def test_a_shape_holds_what_it_was_asked_to_and_is_among_the_known_ones(slots, eighths, coarse, data):
    shapes = Shapes(slots=slots, length=8 * eighths, coarse=coarse)
    live = data.draw(st.integers(1, slots))
    tokens = data.draw(st.integers(1, shapes.length))
    rows, reach = shapes.rows(live), shapes.reach(tokens)
    assert live <= rows <= slots and rows >= FEWEST_ROWS
    assert tokens <= reach <= shapes.length and reach % 8 == 0
    assert (rows, reach) in shapes.every()
    assert not coarse or len(shapes.every()) <= 8
