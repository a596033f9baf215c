"""The heap against one of Java 17, whose steps were recorded."""

from pykstreams.runtime.tasks.priority_queue import PriorityQueue

PRIORITY_QUEUE_IN_JAVA = """
    +2 +4 +4 -0 -2 +0 +0 -3 +1 +3 -4 +3 +2 -5 +2 -8 -9 +0 +3 -10 -11 +3 +4 +0 -14 +2 -15 +1 +4 -16
    +0 +3 -18 +4 +0 +0 +4 +0 -21 +3 +1 -22 +4 +3 +2 +0 +1 -24 +0 +4 +2 -30 +5 -32 +4 +3 +5 +3 +1
    -31 +3 +1 +5 +4 -40 +5 +0 -46 +5 +5 +3 -26 +1 +3 -42 -50 +2 +3 +2 +2 +4 +0 +4 +3 +1 +0 +2 +2 +3
    -57 -61 +1 +3 -60 +2 +0 +5 -68 +0 +1 -70 -65 -71 +3 -63 +5 -55 -67 +4 -34 +0 +0 +2 -75 -76 +3
    +1 +5 +1 +4 -79 +4 +0 -84 -81 -62 -77 +0 +1 -85 -86 +1 -87 -29 -52 +0 +1 +4 -88 +3 -89 +3 -54
    +0 +0 -93 +0 +2 -94 +0 +2 +5 +0 +4 +2 +3 -95 -97 -100 -96 +0 -104 +5 +2 +5 +5 +0 +0 +2 +4 -109
    -110 +3 +1 +1 +0 +3 +4 -116 +3 +4 +4 +0 +3 +4 -122 -114 +5 +2 +0 +4 -127 +4 -115 +5 -126 +1 +3
    +1 -131
""".split()
"""``+t`` adds an item with time t, items are counted from 0; ``-n`` takes item n."""


def test_priority_queue_breaks_ties_as_in_java() -> None:
    queue: PriorityQueue[int] = PriorityQueue()
    added = 0
    for step in PRIORITY_QUEUE_IN_JAVA:
        number = int(step[1:])
        if step[0] == "+":
            queue.add(number, added)
            added += 1
        else:
            assert number == queue.pop()


def test_priority_queue_gives_smallest_times_first() -> None:
    queue: PriorityQueue[str] = PriorityQueue()
    for time in (5, 1, 3):
        queue.add(time, str(time))

    assert 1 == queue.first_time
    assert ["1", "3", "5"] == [queue.pop() for _ in range(len(queue))]
