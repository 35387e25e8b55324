import asyncio


async def worker(name: str, queue: asyncio.Queue[int], done: list[str]) -> None:
    while not queue.empty():
        number = await queue.get()
        await asyncio.sleep(0)
        done.append(f"{name}{number}")


async def main() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    for number in range(6):
        queue.put_nowait(number)
    done: list[str] = []
    await asyncio.gather(worker("a", queue, done), worker("b", queue, done))
    print(sorted(item[1:] for item in done))
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.01)
    except TimeoutError:
        print("timed out")


asyncio.run(main())
