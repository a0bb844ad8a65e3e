"""`placement-ac` with shorter waits, in a process of its own."""

from placement_ac.__main__ import main
from placement_lab.short_waits import short_waits

if __name__ == "__main__":
    with short_waits(SCORE_HOLD_SECONDS=5.0, SCORE_INTERVAL_SECONDS=5.0):
        main()
