import ast

print(ast.literal_eval("{'a': [1, 2.5, None], 'b': (True, b'x')}"))
tree = ast.parse("x = 1 + 2\nprint(x)")
print([type(node).__name__ for node in ast.walk(tree)][:6])
try:
    ast.literal_eval("__import__('os')")
except ValueError as error:
    print(type(error).__name__)
