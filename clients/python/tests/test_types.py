import pathlib
import tomllib
import unittest

import callyard


class Types(unittest.TestCase):
    def test_the_package_says_that_it_is_typed(self) -> None:
        folder = pathlib.Path(callyard.__file__).parent
        self.assertTrue(folder.joinpath("py.typed").is_file())
        project = tomllib.loads(folder.parent.joinpath("pyproject.toml").read_text(encoding="utf-8"))
        self.assertIn("py.typed", project["tool"]["setuptools"]["package-data"]["callyard"])


if __name__ == "__main__":
    unittest.main()
