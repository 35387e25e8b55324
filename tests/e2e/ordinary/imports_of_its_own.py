import importlib

import helper_module
from helper_module import double

print(helper_module.ANSWER, double(21), helper_module.__name__, helper_module.__doc__)
print(importlib.import_module("helper_module") is helper_module, importlib.import_module("json.decoder").__name__)
