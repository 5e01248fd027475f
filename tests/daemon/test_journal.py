"""The daemon's latest log lines, read while others write them."""

import logging
import threading

from daemon.journal import KEPT, Journal


def test_it_is_read_while_threads_write() -> None:
    journal = Journal()
    logger = logging.Logger("busy")
    logger.addHandler(journal)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            logger.warning("line")

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(300):
            numbers = [line.number for line in journal.after(0, KEPT)]
            assert numbers == sorted(numbers)
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_the_newest_lines_after_a_number() -> None:
    journal = Journal()
    for text in "abcd":
        journal.handle(logging.LogRecord("x", logging.INFO, "", 0, text, None, None))
    assert [(line.number, line.level, line.text) for line in journal.after(1, 2)] == [
        (3, "info", "c"),
        (4, "info", "d"),
    ]
