"""This file holds the tests of the search for stop strings: found where the whole text would be searched anew."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from miniverl.engines.cached.stops import GrowingText, Hit, StopWatch
from miniverl.engines.reference import first_stop

BYTES = Tokenizer(models.BPE({chr(code): code - 33 for code in range(33, 127)} | {"Ã": 94, "©": 95, "Ġ": 96}, []))
BYTES.decoder = decoders.ByteLevel()
BYTES.add_special_tokens(["<end>"])
VOCABULARY = {"▁the": 0, "▁cat": 1, "▁sat": 2, "▁on": 3, "▁a": 4, "▁mat": 5}
WORDS = Tokenizer(models.WordLevel(VOCABULARY))
WORDS.decoder = decoders.Metaspace()
WORDS.add_special_tokens(["<end>"])


def searched_anew(tokens, stops, decode):
    """After every token the whole text."""
    for length in range(1, len(tokens) + 1):
        if (stop := first_stop(decode(tokens[:length]), stops)) is not None:
            return Hit(length=length, stop=stop)
    return None


def agree(tokenizer, tokens, stops, chunk):
    watch = StopWatch(stops, (), decode=tokenizer.decode)
    watch.start([3])
    found = None
    for end in range(chunk, len(tokens) + chunk, chunk):
        found = watch.look(3, tokens[:end])
        if found is not None:
            break
    assert found == searched_anew(tokens, stops, tokenizer.decode)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([64, 65, 66, 94, 95, 96, 97]), min_size=1, max_size=20),
    st.lists(st.text("abcé Ã", min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(1, 8),
)
def test_characters_of_several_tokens_and_special_ones(tokens, stops, chunk):
    agree(BYTES, tokens, stops, chunk)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=16),
    st.lists(st.sampled_from(["cat sat", " the", "the the", "t o", "mat", "a"]), min_size=1, max_size=3),
    st.integers(1, 8),
)
def test_words_whose_spaces_depend_on_what_stands_before(tokens, stops, chunk):
    agree(WORDS, tokens, stops, chunk)


def test_a_response_that_its_stop_token_ended_is_not_searched_beyond():
    watch = StopWatch(["bc"], (95,), decode=BYTES.decode)
    watch.start([0])
    assert watch.look(0, [65, 95, 65, 66]) is None


def test_rows_that_move_take_their_text_along():
    watch = StopWatch(["bc"], (), decode=BYTES.decode)
    watch.start([0, 1])
    assert watch.look(1, [65]) is None
    watch.move([(1, 0)])
    assert watch.look(0, [65, 66]) == Hit(length=2, stop="bc")


def test_only_the_end_of_a_text_is_decoded():
    asked = []

    def decode(ids):
        asked.append(len(ids))
        return BYTES.decode(ids)

    text = GrowingText(decode, keep=3)
    for token in [65, 66, 94, 95] * 50:
        text.push(token)
    assert max(asked) <= 4 and text.tokens == 200
