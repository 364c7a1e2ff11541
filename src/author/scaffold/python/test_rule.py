import unittest

from rule import Mostly
from watchfire import Level
from watchfire.testing import Bench


def raised(bench, value):
    return any(hit.raise_ is Level.WARNING for hit in bench.tick([[value]]).hits)


class Tests(unittest.TestCase):
    def test_two_minutes_of_heat_are_told_and_half_the_time_is_not(self):
        bench = Bench(Mostly())
        self.assertFalse(any([raised(bench, 70 if tick % 2 == 0 else 90) for tick in range(100)]))
        self.assertTrue(any([raised(bench, 90) for _ in range(48)]))

    def test_settings_that_cannot_be_are_refused(self):
        for settings in [{"ticks": 0}, {"limits": 80}, {"limit": True}, {"share": "0.5"}]:
            with self.assertRaises(ValueError):
                Bench(Mostly(), settings)


if __name__ == "__main__":
    unittest.main()
