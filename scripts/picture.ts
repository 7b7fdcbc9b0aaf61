// Makes the picture of README.md, scripts/recovery.svg, from a running gateway:
// `node --import tsx scripts/picture.ts`. A test makes it anew and compares.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { draw } from "./picture/draw.ts";
import { configOf, record, startDying, startSteady } from "./picture/record.ts";

const PICTURE = resolve(import.meta.dirname, "recovery.svg");
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
  const [line] = (await once(createInterface(gateway.stdout), "line")) as [string];
  const [address = ""] = /http:\S+/.exec(line) ?? [];
  writeFileSync(PICTURE, draw(await record(address)));
  console.log(`written: ${PICTURE}`);
} finally {
  gateway.kill("SIGTERM");
  await once(gateway, "exit");
  dying.close();
  steady.close();
  rmSync(folder, { recursive: true });
}
