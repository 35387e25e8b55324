import gc
import sys
import weakref


class Thing:
    pass


thing = Thing()
watcher = weakref.ref(thing, lambda _: print("gone"))
table = weakref.WeakValueDictionary(key=thing)
print(watcher() is thing, len(table), sys.getrefcount(thing) >= 2)
del thing
gc.collect()
print(watcher(), len(table))
left, right = Thing(), Thing()
left.other, right.other = right, left
weakref.finalize(left, print, "collected")
del left, right
print(gc.collect() >= 2)
