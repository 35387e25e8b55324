import threading
from queue import Queue

lock, total = threading.Lock(), 0
jobs: "Queue[int | None]" = Queue()


def work():
    global total
    while (job := jobs.get()) is not None:
        with lock:
            total += job


workers = [threading.Thread(target=work, name=f"w{number}", daemon=True) for number in range(4)]
for worker in workers:
    worker.start()
for number in range(100):
    jobs.put(number)
for _ in workers:
    jobs.put(None)
for worker in workers:
    worker.join()
print(total, threading.active_count(), threading.current_thread().name)
local = threading.local()
local.value = 1
event = threading.Event()
threading.Thread(target=event.set).start()
print(event.wait(30), local.value, threading.Barrier(1).wait())
