import unittest


class TestTexts(unittest.TestCase):
    def test_upper(self):
        self.assertEqual("a".upper(), "A")

    def test_fails(self):
        self.assertTrue(False)


if __name__ == "__main__":
    runner = unittest.main(exit=False, verbosity=0, testRunner=unittest.TextTestRunner(stream=open("report", "w")))
    print(runner.result.testsRun, len(runner.result.failures))
    runner.result.stream.stream.close()
    raise SystemExit(not runner.result.wasSuccessful())
