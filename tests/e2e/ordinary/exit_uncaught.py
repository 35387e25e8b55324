def inner(values):
    return values["missing"]


def outer():
    return inner({"there": 1})


print("before")
outer()
