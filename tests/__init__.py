"""The tests. Every plan that they make is checked for timers that nobody starts."""

from tests.support import timers

timers.check_all_plans()
