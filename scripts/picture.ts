// Makes the picture of README.md, scripts/recovery.svg, from a running gateway:
// `node --import tsx scripts/picture.ts [FILE]`. A test makes it anew and compares.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { draw } from "./picture/draw.ts";
import { configOf, record, startDying, startSteady } from "./picture/record.ts";

const PICTURE = resolve(process.argv[2] ?? join(import.meta.dirname, "recovery.svg"));
const PROGRAM = resolve(import.meta.dirname, "../src/main.ts");

const folder = mkdtempSync(join(tmpdir(), "picture-"));
const [dying, steady] = await Promise.all([startDying(), startSteady()]);
const config = { ...configOf(dying, steady), server: { port: 0 }, admin: { port: 0 } };
writeFileSync(join(folder, "gateway.json"), JSON.stringify({ ...config, data_dir: folder }));
const gateway = spawn(
  process.execPath,
  ["--import", "tsx", PROGRAM, "serve", "--config", join(folder, "gateway.json")],
  { stdio: ["ignore", "pipe", "inherit"] },
);
try {
  // "close" comes without a line if the gateway did not start; it has said why on stderr.
  const lines = createInterface(gateway.stdout);
  const [line = ""] = (await Promise.race([once(lines, "line"), once(lines, "close")])) as string[];
  const [address] = /http:\S+/.exec(line) ?? [];
  if (address === undefined) throw new Error("the gateway did not start");
  writeFileSync(PICTURE, draw(await record(address)));
  console.log(`written: ${PICTURE}`);
} finally {
  if (gateway.exitCode === null) {
    gateway.kill("SIGTERM");
    await once(gateway, "exit");
  }
  dying.close();
  steady.close();
  rmSync(folder, { recursive: true });
}
