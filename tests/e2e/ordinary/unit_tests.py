import io
import unittest


class TestSums(unittest.TestCase):
    def setUp(self):
        self.values = [1, 2, 3]

    def test_sum(self):
        self.assertEqual(sum(self.values), 6)

    def test_wrong(self):
        with self.subTest(part=1):
            self.assertIn(4, self.values)

    @unittest.skip("not now")
    def test_skipped(self):
        raise AssertionError

    def test_raises(self):
        with self.assertRaisesRegex(ValueError, "invalid literal"):
            int("x")


suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestSums)
result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)
print(result.testsRun, len(result.failures), len(result.errors), len(result.skipped))
