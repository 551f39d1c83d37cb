"""scripts/wheel.py BUILD VERSION: BUILD/python/frontier_nki as a wheel, with the standard library alone.

A wheel is a zip of the package and four small text files. The extension uses CPython's stable ABI, so one
wheel serves 3.11 and all later versions; the platform tag says the oldest glibc whose symbols it needs.
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile

build, version = sys.argv[1], sys.argv[2]
root = os.path.join(build, "python")


def glibc_needed(path):
    """(2, 28) if nothing newer is asked for, else the newest."""
    symbols = subprocess.run(["objdump", "-T", path], capture_output=True, text=True).stdout
    found = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", symbols)]
    return max([(2, 28), *found])


def files():
    for folder, _, names in os.walk(os.path.join(root, "frontier_nki")):
        for name in sorted(names):
            if not name.endswith(".pyc"):
                yield os.path.join(folder, name)


major, minor = glibc_needed(os.path.join(root, "frontier_nki", "_core.abi3.so"))
tag = f"cp311-abi3-manylinux_{major}_{minor}_{platform.machine()}"
info = f"frontier_nki-{version}.dist-info"
texts = {
    f"{info}/METADATA": f"Metadata-Version: 2.1\nName: frontier-nki\nVersion: {version}\nSummary: NKI kernels on "
    f"a simulated NeuronCore\nLicense: Apache-2.0\nRequires-Python: >=3.11\nRequires-Dist: numpy\n",
    f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: frontier\nRoot-Is-Purelib: false\nTag: {tag}\n",
    f"{info}/top_level.txt": "frontier_nki\n",
}
record = []
target = os.path.join(root, f"frontier_nki-{version}-{tag}.whl")
with zipfile.ZipFile(target + ".new", "w", zipfile.ZIP_DEFLATED) as wheel:

    def put(name, data):
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # same bytes from the same sources
        entry.external_attr = 0o644 << 16
        wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")

    for path in sorted(files()):
        with open(path, "rb") as f:
            put(os.path.relpath(path, root), f.read())
    for name, text in texts.items():
        put(name, text.encode())
    record.append(f"{info}/RECORD,,")
    wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0)), "\n".join(record) + "\n")
os.replace(target + ".new", target)
for name in os.listdir(root):  # of an earlier version or tag
    if name.endswith(".whl") and name != os.path.basename(target):
        os.unlink(os.path.join(root, name))
