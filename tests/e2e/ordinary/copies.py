import copy


class Node:
    def __init__(self, value, parent=None):
        self.value, self.parent, self.children = value, parent, []


root = Node(1)
root.children = [Node(2, root), Node(3, root)]
twin = copy.deepcopy(root)
print(twin is root, twin.children[0].parent is twin, copy.copy(root).children is root.children)
print(copy.deepcopy({"a": [1, {2}], "b": (3,)}))
