"""Bytes with some of them changed, left out or put in."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(data)
