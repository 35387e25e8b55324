import sys
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("old", DeprecationWarning, stacklevel=1)
print([str(item.message) for item in caught], caught[0].category.__name__)
warnings.filterwarnings("error", category=RuntimeWarning)
try:
    warnings.warn("now an error", RuntimeWarning, stacklevel=1)
except RuntimeWarning as error:
    print("raised", error)
print(sys.version_info >= (3, 11), sys.byteorder, sys.maxsize.bit_length())
