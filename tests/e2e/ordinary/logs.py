import logging
import sys
import warnings

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s: %(message)s", level=logging.INFO)
handler = logging.FileHandler("run.log", encoding="utf-8")
handler.setFormatter(logging.Formatter("%(message)s"))
logger = logging.getLogger("demo.part")
logger.addHandler(handler)
logger.info("started with %d", 3)
logger.debug("not shown")
try:
    1 / 0  # noqa: B018
except ZeroDivisionError:
    logger.error("failed: %s", "division")
logging.captureWarnings(True)
warnings.warn("careful", UserWarning, stacklevel=1)
logging.shutdown()
with open("run.log") as file:
    print(file.read())
