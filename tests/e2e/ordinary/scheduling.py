import queue
import sched
import threading
import time

scheduler = sched.scheduler(time.monotonic, time.sleep)
order = []
scheduler.enter(0.02, 1, order.append, ("second",))
scheduler.enter(0.01, 1, order.append, ("first",))
scheduler.run()
print(order)
waiting = queue.PriorityQueue()
for item in ((3, "c"), (1, "a"), (2, "b")):
    waiting.put(item)
print([waiting.get()[1] for _ in range(3)])
timer = threading.Timer(0.01, order.append, ("timer",))
timer.start()
timer.join()
print(order[-1])
