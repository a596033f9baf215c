"""Where rows are kept: sorted maps of bytes, and engines over them.

``state.interfaces.engine`` says what every engine does; ``memory`` and ``rocksdb`` are those that keep rows. Over these
lie ``transactional`` (writes wait for a commit), ``segments`` (rows are forgotten when they are too old),
``second_rows`` (rows are found in another order, too) and ``adapter`` (rows are kept in another layout).
"""
