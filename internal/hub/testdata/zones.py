"""Writes zones.json.gz: offsets of time zones in seconds by Python's zoneinfo.

Usage: python3.11 zones.py, where this file is, with the package tzdata installed.
"""

import gzip
import json
import random
import zoneinfo
from datetime import datetime, timezone
from pathlib import Path

zoneinfo.reset_tzpath(to=[])  # the data of the package, not of the machine
rnd = random.Random(20261125)
first, last = datetime(1985, 1, 1, tzinfo=timezone.utc), datetime(2025, 1, 1, tzinfo=timezone.utc)
instants = sorted(rnd.randrange(int(first.timestamp()), int(last.timestamp())) // 60 * 60 for _ in range(40))
# Around changes of the clocks, where a reading is skipped or comes twice.
instants += [int(datetime(2024, m, d, h, 30, tzinfo=timezone.utc).timestamp()) for m, d in [(3, 10), (3, 31), (4, 7), (10, 6), (10, 27), (11, 3)] for h in (1, 2)]
zones = {}
names = [n for n in sorted(zoneinfo.available_timezones()) if "/" in n and not n.startswith("Etc/")]
for name in rnd.sample(names, 420):
    z = zoneinfo.ZoneInfo(name)
    rows = []
    for i in instants:
        utc = datetime.fromtimestamp(i, timezone.utc)
        wall = utc.replace(tzinfo=z)
        rows.append([int(utc.astimezone(z).utcoffset().total_seconds()), int(wall.utcoffset().total_seconds())])
    zones[name] = rows
with open(Path(__file__).parent / "zones.json.gz", "wb") as raw:
    with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as out:
        out.write(json.dumps({"Instants": instants, "Zones": zones}, separators=(",", ":")).encode())
print(len(zones), "zones,", len(instants), "instants")
