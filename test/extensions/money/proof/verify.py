"""Verifies books (a data_dir) or a sealed statement. Written from the manual's page on seals alone.
verify.py PATH PUBLIC_KEY_PEM; Python 3 and the command openssl, nothing else."""
import hashlib, json, os, subprocess, sys, tempfile

path, pem = sys.argv[1], sys.argv[2]
sha = lambda data: hashlib.sha256(data).digest()
hexsha = lambda data: sha(data).hex()
leaf = lambda line: sha(b"\0" + line)
node = lambda left, right: sha(b"\1" + left + right)
lines_of = lambda name: read(name).split(b"\n")[:-1]

def read(name):
    name = os.path.join(path, name)
    return open(name, "rb").read() if os.path.exists(name) else b""

def check(what, is_right):
    if not is_right: sys.exit(f"wrong: {what}")

def check_signature(what, line):
    body, _, end = line.rpartition(b',"signature":"')
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("body", sha(body + b"}")), ("sig", bytes.fromhex(end[:-2].decode()))):
            open(f"{folder}/{name}", "wb").write(data)
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", pem, "-rawin"]
        files = ["-in", f"{folder}/body", "-sigfile", f"{folder}/sig"]
        check(f"{what}: signature", subprocess.run(command + files, capture_output=True).returncode == 0)

def root_of(size, known, hashes):
    while size > 1:
        above = {}
        for i in sorted(known):
            if i // 2 in above: continue
            beside = (known.get(i ^ 1) or bytes.fromhex(hashes.pop(0))) if (i ^ 1) < size else None
            pair = (beside, known[i]) if i % 2 else (known[i], beside)
            above[i // 2] = node(*pair) if beside else known[i]
        known, size = above, (size + 1) // 2
    return known.get(0, sha(b"")).hex()

def verify_books():
    previous, listed = None, []
    for number, line in enumerate(lines_of("days.jsonl"), 1):
        day, what = json.loads(line), f"days.jsonl, line {number}"
        check(what, (day["number"], day["previous"]) == (number, previous))
        check_signature(what, line)
        previous = hexsha(line)
        listed += [(day["day"], each) for each in day["segments"]]
        for each in day["segments"]:  # segments are deleted after a time
            data = read(f"spend/{each['segment']}")[: each["bytes"]]
            check(f"spend/{each['segment']}", data == b"" or hexsha(data) == each["sha256"])
        name = f"usage/{day['day']}.jsonl"
        data, records = read(name), lines_of(name)
        check(name, (len(data), hexsha(data), len(records)) == (day["file_bytes"], day["file_sha256"], day["records"]))
        check(name, root_of(len(records), {i: leaf(each) for i, each in enumerate(records)}, []) == day["root"])
        for record in map(json.loads, records): verify_record(name, record, day["day"], listed)

def verify_record(name, record, day, listed):
    log, what = record["log"], f"{name}: {record['usage_id']}"
    covered = [d for d, each in listed if each["segment"] == log["segment"] and each["lines"] >= log["line"]][0]
    check(what, record["day"] == day == max(covered, record["ended_at"][:10]))
    before = lines_of(f"spend/{log['segment']}")[: log["line"]]
    if before:
        own = [line for line in before if json.loads(line)["spend_id"] == record["usage_id"]]
        check(what, len(own) <= 2 and hexsha(b"".join(line + b"\n" for line in own)) == log["sha256"])
        settle = json.loads(own[-1])
        names = ("type", "account", "key_id", "cost", "currency", "time")
        values = ("settle", *(record[each] for each in ("account", "key_id", "cost", "currency", "ended_at")))
        check(what, tuple(settle[each] for each in names) == values)

def verify_statement(text):
    check_signature("statement", text)
    count = 0
    for day in json.loads(text)["days"]:
        if "line" in day:
            check_signature(day["day"], day["line"].encode())
            size, root = (json.loads(day["line"])[each] for each in ("records", "root"))
            known = {index: leaf(line.encode()) for index, line in day["records"]}
            check(day["day"], not known or root_of(size, known, day["hashes"]) == root)
        count += len(day["records"])
    check("requests", count == json.loads(text)["bill"]["total"]["requests"])

verify_books() if os.path.isdir(path) else verify_statement(open(path, "rb").read().rstrip(b"\n"))
print("right")
