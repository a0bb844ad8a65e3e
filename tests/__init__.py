"""The tests. Every plan that they make is checked for ages that it waits for and does not keep."""

from tests.support import ages

ages.check_all_plans()
