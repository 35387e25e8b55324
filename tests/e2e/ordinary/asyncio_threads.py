import asyncio
import threading


def blocking(number: int) -> int:
    return number * number


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asyncio.to_thread(blocking, number)) for number in range(5)]
    print([task.result() for task in tasks], threading.current_thread().name)


asyncio.run(main())
