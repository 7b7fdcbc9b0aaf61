"""Verifies a data_dir or a sealed statement: verify.py PATH PUBLIC_KEY_PEM. From the manual alone."""
import hashlib, json, os, subprocess, sys, tempfile
path, pem = sys.argv[1], sys.argv[2]
sha = lambda data: hashlib.sha256(data).digest()
leaf = lambda line: sha(b"\0" + line)
def read(name):
    name = os.path.join(path, name)
    return open(name, "rb").read() if os.path.exists(name) else b""
def check(what, is_right):
    if not is_right: sys.exit(f"wrong: {what}")
def check_signature(what, line):
    body, _, end = line.rpartition(b',"signature":"')
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("body", sha(body + b"}")), ("sig", bytes.fromhex(end[:-2].decode()))):
            with open(f"{folder}/{name}", "wb") as file: file.write(data)
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", pem, "-rawin"]
        files = ["-in", f"{folder}/body", "-sigfile", f"{folder}/sig"]
        check(f"{what}: signature", subprocess.run(command + files, capture_output=True).returncode == 0)
def root_of(size, known, hashes):
    while size > 1:
        above = {}
        for i in sorted(known):
            if i // 2 in above: continue
            beside = (known.get(i ^ 1) or bytes.fromhex(hashes.pop(0))) if (i ^ 1) < size else b""
            above[i // 2] = sha(b"\1" + (beside + known[i] if i % 2 else known[i] + beside)) if beside else known[i]
        known, size = above, (size + 1) // 2
    return known.get(0, sha(b"")).hex()
def verify_record(what, record, day, listed):
    segment, line = record["log"]["segment"], record["log"]["line"]
    covered = [d for d, each in listed if each["segment"] == segment and each["lines"] >= line]
    check(what, covered and record["day"] == day == max(covered[0], record["ended_at"][:10]))
    before = read(f"spend/{segment}").split(b"\n")[:line]  # segments are deleted after a time
    own = [each for each in before if each and json.loads(each)["spend_id"] == record["usage_id"]]
    check(what, not any(before) or (own and own[-1] is before[-1]))
    check(what, not own or sha(b"".join(each + b"\n" for each in own)).hex() == record["log"]["sha256"])
    same = {"account": "account", "cost": "cost", "currency": "currency", "ended_at": "time"}
    check(what, not own or all(record[one] == json.loads(own[-1])[other] for one, other in same.items()))
def verify_books(previous=None, listed=()):
    for number, line in enumerate(read("days.jsonl").split(b"\n")[:-1], 1):
        day, what = json.loads(line), f"days.jsonl, line {number}"
        check(what, (day["number"], day["previous"]) == (number, previous))
        check_signature(what, line)
        previous, listed = sha(line).hex(), [*listed, *((day["day"], each) for each in day["segments"])]
        for each in day["segments"]:
            data = read(f"spend/{each['segment']}")[: each["bytes"]]
            check(f"spend/{each['segment']}", data == b"" or sha(data).hex() == each["sha256"])
        name = f"usage/{day['day']}.jsonl"
        data, lines = read(name), read(name).split(b"\n")[:-1]
        check(name, (len(data), sha(data).hex(), len(lines)) == (day["file_bytes"], day["file_sha256"], day["records"]))
        check(name, root_of(len(lines), dict(enumerate(map(leaf, lines))), []) == day["root"])
        for record in map(json.loads, lines): verify_record(f"{name}: {record['usage_id']}", record, day["day"], listed)
def verify_statement(text):
    check_signature("statement", text)
    before = {}
    for day in (each for each in json.loads(text)["days"] if "line" in each):
        line = json.loads(day["line"])
        check(day["day"], "signature" in line or "signature" not in before)
        if "signature" in line: check_signature(day["day"], day["line"].encode())
        check(day["day"], line["number"] != before.get("number", -1) + 1 or line["previous"] == before["sha256"])
        before = {**line, "sha256": sha(day["line"].encode()).hex()}
        known = {index: leaf(text.encode()) for index, text in day["records"]}
        check(day["day"], not known or root_of(line["records"], known, day["hashes"]) == line["root"])
verify_books() if os.path.isdir(path) else verify_statement(open(path, "rb").read().rstrip(b"\n"))
