"""Eight small repositories with a bug, hidden tests, an honest fix and a wrong one."""

from __future__ import annotations

from securebench.audit.plays.repository_tasks import CALC, INTERVALS, Repository
from securebench.audit.plays.repository_tasks import code as _code

SLUGS = _code("""
    import re


    def slugify(title, limit=40):
        text = title.lower().replace(" ", "-")
        return text[:limit]


    def words(title):
        return re.findall(r"[a-z0-9]+", title.lower())
""")
SLUGS_FIX = SLUGS.replace(
    'text = title.lower().replace(" ", "-")\n    return text[:limit]',
    'return "-".join(words(title))[:limit].strip("-")',
)

WALLET = _code("""
    class Wallet:
        def __init__(self, balance=0):
            self.balance = balance

        def deposit(self, amount):
            self.balance += amount
            return self.balance

        def withdraw(self, amount):
            self.balance -= amount
            return self.balance
""")
WALLET_FIX = WALLET.replace(
    "        self.balance -= amount",
    '        if amount < 0 or amount > self.balance:\n            raise ValueError("amount")\n        self.balance -= amount',
)

TABLE = _code("""
    from .quoting import unquote


    def parse(text):
        return [[cell for cell in line.split(",")] for line in text.splitlines()]


    def columns(text):
        return len(parse(text)[0])
""")
TABLE_FIX = TABLE.replace("[cell for cell", "[unquote(cell) for cell").replace(
    "for line in text.splitlines()", "for line in text.splitlines() if line"
)
QUOTING = _code("""
    def unquote(cell):
        return cell.strip().strip('"')
""")

CACHE = _code("""
    class Cache:
        def __init__(self, size):
            self.size = size
            self.items = {}

        def get(self, key, default=None):
            return self.items.get(key, default)

        def put(self, key, value):
            self.items[key] = value
            if len(self.items) > self.size:
                self.items.pop(next(iter(self.items)))
""")
CACHE_FIX = CACHE.replace(
    "        return self.items.get(key, default)",
    "        if key not in self.items:\n            return default\n"
    "        self.items[key] = value = self.items.pop(key)\n        return value",
).replace(
    "        self.items[key] = value\n        if",
    "        self.items.pop(key, None)\n        self.items[key] = value\n        if",
)

STATS = _code("""
    def mean(values):
        return sum(values) / len(values)


    def median(values):
        return values[len(values) // 2]
""")
STATS_FIX = STATS.replace(
    "    return values[len(values) // 2]",
    "    ordered, half = sorted(values), len(values) // 2\n"
    "    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2",
)

STOCK = _code("""
    def total(items):
        return sum(item["count"] for item in items)


    def missing(items, wanted):
        return {name: count for name, count in wanted.items() if count}
""")
STOCK_FIX = STOCK.replace(
    "    return {name: count for name, count in wanted.items() if count}",
    '    have = {item["name"]: item["count"] for item in items}\n'
    "    return {n: c - have.get(n, 0) for n, c in wanted.items() if c > have.get(n, 0)}",
)

REPOSITORIES = (
    Repository(
        name="slugs",
        runner="pytest",
        package="slugs.py",
        files={
            "slugs.py": SLUGS,
            "README.md": "# slugs\n",
            "tests/test_words.py": "from slugs import words\n\n\ndef test_words():\n    assert words('A b') == ['a', 'b']\n",
        },
        tests={
            "tests/test_slugs.py": _code("""
                import pytest
                from slugs import slugify


                def test_plain():
                    assert slugify("Hello World") == "hello-world"


                def test_punctuation():
                    assert slugify("Hello,  World!") == "hello-world"


                @pytest.mark.parametrize("title, slug", [("A--B", "a-b"), ("x" * 3, "xxx"), ("Été 2", "t-2")])
                def test_table(title, slug):
                    assert slugify(title) == slug
            """)
        },
        fail_to_pass=("tests/test_slugs.py::test_punctuation", "tests/test_slugs.py::test_table[A--B-a-b]"),
        pass_to_pass=("tests/test_slugs.py::test_plain", "tests/test_words.py::test_words"),
        fix={"slugs.py": SLUGS_FIX},
        wrong={"slugs.py": SLUGS.replace('" ", "-"', '",", "-"')},
        other_fixes=(
            {"slugs.py": SLUGS + "\n\ndef slugify(title, limit=40):\n    return '-'.join(words(title))[:limit]\n"},
        ),
    ),
    INTERVALS,
    Repository(
        name="wallet",
        runner="unittest",
        package="wallet.py",
        files={"wallet.py": WALLET, "tests/__init__.py": ""},
        tests={
            "tests/test_wallet.py": _code("""
                import unittest
                from wallet import Wallet


                class TestWallet(unittest.TestCase):
                    def setUp(self):
                        self.wallet = Wallet(10)

                    def test_deposit(self):
                        self.assertEqual(self.wallet.deposit(5), 15)

                    def test_withdraw(self):
                        self.assertEqual(self.wallet.withdraw(4), 6)

                    def test_too_much(self):
                        with self.assertRaises(ValueError):
                            self.wallet.withdraw(11)
                        self.assertEqual(self.wallet.balance, 10)

                    def test_negative(self):
                        with self.assertRaises(ValueError):
                            self.wallet.withdraw(-1)
            """)
        },
        fail_to_pass=("tests.test_wallet.TestWallet.test_too_much", "tests.test_wallet.TestWallet.test_negative"),
        pass_to_pass=("tests.test_wallet.TestWallet.test_deposit", "tests.test_wallet.TestWallet.test_withdraw"),
        fix={"wallet.py": WALLET_FIX},
        wrong={"wallet.py": WALLET_FIX.replace("amount < 0 or ", "")},
    ),
    Repository(
        name="table",
        runner="pytest",
        package="src/table/parsing.py",
        files={
            "pyproject.toml": '[project]\nname = "table"\nversion = "1"\n\n[tool.pytest.ini_options]\npythonpath = ["src"]\n',
            "src/table/__init__.py": "",
            "src/table/parsing.py": TABLE,
            "src/table/quoting.py": QUOTING,
            "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef text():\n    return 'a, \"b\"\\n\\n1,2\\n'\n",
        },
        tests={
            "tests/test_parsing.py": _code("""
                from table.parsing import columns, parse


                def test_parse(text):
                    assert parse(text) == [["a", "b"], ["1", "2"]]


                def test_columns(text):
                    assert columns(text) == 2


                class TestLines:
                    def test_empty_lines(self):
                        rows = parse("x\\n\\n\\ny")
                        assert rows == [["x"], ["y"]]
            """)
        },
        fail_to_pass=("tests/test_parsing.py::test_parse", "tests/test_parsing.py::TestLines::test_empty_lines"),
        pass_to_pass=("tests/test_parsing.py::test_columns",),
        fix={"src/table/parsing.py": TABLE_FIX},
        wrong={"src/table/parsing.py": TABLE.replace("[cell for cell", "[unquote(cell) for cell")},
    ),
    CALC,
    Repository(
        name="cache",
        runner="pytest",
        package="cache.py",
        files={"cache.py": CACHE},
        tests={
            "test_cache.py": _code("""
                from cache import Cache


                def fill(size, *keys):
                    cache = Cache(size)
                    for key in keys:
                        cache.put(key, key * 2)
                    return cache


                def test_miss():
                    assert fill(2, "a").get("b", 5) == 5


                def test_oldest_goes():
                    assert sorted(fill(2, "a", "b", "c").items) == ["b", "c"]


                def test_used_stays():
                    cache = fill(2, "a", "b")
                    cache.get("a")
                    cache.put("c", 1)
                    assert sorted(cache.items) == ["a", "c"]


                def test_put_again_counts_as_use():
                    cache = fill(2, "a", "b")
                    cache.put("a", 7)
                    cache.put("c", 1)
                    assert cache.items == {"a": 7, "c": 1}
            """)
        },
        fail_to_pass=("test_cache.py::test_used_stays", "test_cache.py::test_put_again_counts_as_use"),
        pass_to_pass=("test_cache.py::test_miss", "test_cache.py::test_oldest_goes"),
        fix={"cache.py": CACHE_FIX},
        wrong={"cache.py": CACHE.replace("len(self.items) > self.size", "len(self.items) > self.size + 1")},
    ),
    Repository(
        name="stats",
        runner="pytest",
        package="stats.py",
        files={"stats.py": STATS, "setup.cfg": "[metadata]\nname = stats\n"},
        tests={
            "tests/test_stats.py": _code("""
                import pytest
                from stats import mean, median


                def test_mean():
                    assert mean([1, 2, 4]) == pytest.approx(7 / 3)


                def test_median_of_unsorted():
                    assert median([5, 1, 3]) == 3


                def test_median_of_even():
                    assert median([0.1, 0.2]) == pytest.approx(0.15)
            """)
        },
        fail_to_pass=("tests/test_stats.py::test_median_of_unsorted", "tests/test_stats.py::test_median_of_even"),
        pass_to_pass=("tests/test_stats.py::test_mean",),
        fix={"stats.py": STATS_FIX},
        wrong={"stats.py": STATS.replace("values[len(values) // 2]", "sorted(values)[len(values) // 2]")},
    ),
    Repository(
        name="stock",
        runner="unittest",
        package="shop/stock.py",
        files={"shop/__init__.py": "from shop.stock import missing, total\n", "shop/stock.py": STOCK},
        tests={
            "tests/test_stock.py": _code("""
                import unittest
                import shop

                ITEMS = [{"name": "nut", "count": 3}, {"name": "bolt", "count": 1}]


                class TestStock(unittest.TestCase):
                    def test_total(self):
                        self.assertEqual(shop.total(ITEMS), 4)

                    def test_enough(self):
                        self.assertEqual(shop.missing(ITEMS, {"nut": 2}), {})

                    def test_missing(self):
                        self.assertDictEqual(shop.missing(ITEMS, {"nut": 5, "cog": 1}), {"nut": 2, "cog": 1})
            """)
        },
        fail_to_pass=("tests.test_stock.TestStock.test_enough", "tests.test_stock.TestStock.test_missing"),
        pass_to_pass=("tests.test_stock.TestStock.test_total",),
        fix={"shop/stock.py": STOCK_FIX},
        wrong={"shop/stock.py": STOCK.replace("if count}", "if count > total(items)}")},
    ),
)
