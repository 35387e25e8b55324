import array
import sys

numbers = array.array("i", range(10))
numbers.extend([100, 200])
numbers.byteswap()
numbers.byteswap()
print(numbers.tolist(), numbers.itemsize, sys.getsizeof(numbers) > 0)
view = memoryview(numbers)[2:5]
view[0] = -7
print(numbers[2], bytes(view).hex())
