"""Every way a hostile program is tried, and the table of what stopped it.

`guard` and `sealed` run inside the stage's container, because whatever gets past them would act on the host. The other
levels are sandboxes themselves and run from here, as `securebench exec` does. Measure the table anew with
`python -m tests.attacks.python.levels`; tests hold every later version to it."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import anyio
from tests.attacks.python.attack import COLUMNS, Attack, Seen
from tests.attacks.python.container import Outcome, play
from tests.attacks.python.programs import ATTACKS
from tests.attacks.python.running import run_at
from tests.attacks.python.world import World

from securebench.execution.isolation import Isolation, select_isolation
from securebench.execution.request import Policy

RESULTS = Path(__file__).with_name("results.json")
SIDE_BY_SIDE = 3
POLICIES = {"default": Policy.STRICT, "kernel": Policy.OFF}


def run_here(name: str, attacks: Iterable[Attack], level: str = "bubblewrap") -> dict[str, Outcome]:
    """`default`: guard, seal and backend. `kernel`: the same with the guard left out."""
    return anyio.run(_run_here, list(attacks), level, POLICIES[name])


async def _run_here(attacks: list[Attack], level: str, policy: Policy) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    slots = anyio.CapacityLimiter(SIDE_BY_SIDE)
    base = Path(tempfile.mkdtemp(prefix="securebench-attacks-"))

    async def one(attack: Attack, isolation: Isolation) -> None:
        async with slots:
            with World(attack, base) as world:
                ran = await run_at(world, isolation, policy)
                found[attack.id] = Outcome(world.succeeded(ran), ran.note)

    try:
        base.chmod(0o755)
        isolation = await select_isolation(level)
        async with anyio.create_task_group() as tasks:
            for attack in attacks:
                tasks.start_soon(one, attack, isolation)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return found


def kernel_promises(attack: Attack) -> bool:
    """Whether the kernel has to stop it with the guard deleted: all but dynamic code, modules and tracing."""
    return attack.seen is not Seen.ANSWER


def recorded() -> dict[str, dict[str, bool]]:
    """Per attack: whether it was blocked by the guard alone, the seal with it, the kernel alone, and the default."""
    found: dict[str, dict[str, bool]] = json.loads(RESULTS.read_text())
    return found


def blocked_by(row: dict[str, bool]) -> str:
    match row["guard"], row["kernel"]:
        case True, True:
            return "both"
        case True, False:
            return "guard"
        case False, True:
            return "kernel"
    return "seal" if row["default"] else "got through"


def summary(rows: dict[str, dict[str, bool]]) -> dict[str, Counter[str]]:
    """Per column: how many were blocked by what."""
    found: dict[str, Counter[str]] = {column: Counter() for column in COLUMNS}
    for attack in ATTACKS:
        found[attack.column][blocked_by(rows[attack.id])] += 1
    return found


def measure() -> dict[str, dict[str, bool]]:
    ids = [attack.id for attack in ATTACKS]
    seen = {
        "control": play("control", ids),
        "guard": play("guard", ids),
        "sealed": play("sealed", ids),
        "kernel": run_here("kernel", ATTACKS),
        "default": run_here("default", ATTACKS),
    }
    idle = [name for name, outcome in seen.pop("control").items() if not outcome.succeeded]
    for level, outcomes in seen.items():
        through = [name for name, outcome in outcomes.items() if outcome.succeeded]
        print(f"{level}: {len(through)} got through", *(through if level != "kernel" else []), file=sys.stderr)
    print("did nothing even unprotected:", idle, file=sys.stderr)
    return {name: {level: not seen[level][name].succeeded for level in seen} for name in ids}


if __name__ == "__main__":
    rows = measure()
    RESULTS.write_text("{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}\n")
    for column, counts in summary(rows).items():
        print(f"{column:10} {sum(counts.values()):4} {dict(counts)}")
