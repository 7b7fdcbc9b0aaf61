// Each extension can be deleted: without its folder and its line in src/extensions.ts the rest has
// no type errors, builds into one file, and answers a request. The extensions that import it are
// deleted with it; their READMEs say so.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { buildSync } from "esbuild";
import { embeddedTexts, PROGRAM, withEntries } from "../scripts/build.ts";
import { post } from "./extensions/apis/post.ts";
import { folder } from "./support/folder.ts";
import { json, KEY, user } from "./support/gateway.ts";
import { extensionFolders as names, extensionOf, importsIn } from "./support/sources.ts";
import { run } from "./support/command.ts";
import { todays } from "./support/long.ts";
import { speak, startProvider } from "./support/provider.ts";

const crossing = importsIn("src/extensions").filter(({ to }) => to.startsWith("src/extensions/"));

/** The extension itself, and all that import it, directly or indirectly. */
function withDependents(name: string): ReadonlySet<string> {
  const deleted = new Set([name]);
  let size = 0;
  while (size < deleted.size) {
    size = deleted.size;
    for (const { from, to } of crossing)
      if (deleted.has(extensionOf(to))) deleted.add(extensionOf(from));
  }
  return deleted;
}

function copyWithout(deleted: ReadonlySet<string>): string {
  const place = folder();
  cpSync("src", join(place, "src"), { recursive: true });
  for (const file of ["tsconfig.json", "package.json"]) cpSync(file, join(place, file));
  symlinkSync(resolve("node_modules"), join(place, "node_modules"));
  for (const name of deleted)
    rmSync(join(place, "src/extensions", name), { recursive: true, force: true });
  const table = join(place, "src/extensions.ts");
  const text = withEntries(readFileSync(table, "utf8"), (name) => !deleted.has(name));
  for (const name of deleted) assert.ok(!text.includes(`extensions/${name}/`), `${name} is named`);
  writeFileSync(table, text);
  return place;
}

function assertNoTypeErrors(place: string): void {
  const tsc = resolve("node_modules/typescript/bin/tsc");
  try {
    execFileSync(process.execPath, [tsc], { cwd: place, stdio: "pipe" });
  } catch (error) {
    assert.fail(String((error as { stdout?: unknown }).stdout));
  }
}

async function assertServes(t: TestContext, place: string): Promise<void> {
  const outfile = join(place, "gateway.mjs");
  buildSync({
    ...PROGRAM,
    entryPoints: [join(place, "src/main.ts")],
    outfile,
    footer: { js: embeddedTexts(join(place, "src")) },
  });
  const provider = await startProvider(t, { m: speak("Hello.") });
  const config = {
    server: { port: 0 },
    providers: { lab: { dialect: "openai", base_url: provider.url, thinking: "none" } },
    models: { m: { provider: "lab" } },
    keys: [{ account: "acme", key: KEY }],
  };
  const file = join(place, "gateway.json");
  writeFileSync(file, JSON.stringify(config));
  const program = { args: [outfile], cwd: place };
  const running = run(t, ["serve", "--config", file], { program, cwd: place });
  const body = { model: "m", messages: user("hi") };
  const { choices } = await json(
    await post(`${await running.address()}/v1/chat/completions`, body),
  );
  assert.equal(choices[0]?.message.content, "Hello.");
}

describe("an extension that is deleted", () => {
  it("leaves a core that builds and serves, if all are deleted", async (t) => {
    const place = copyWithout(new Set(names));
    assertNoTypeErrors(place);
    await assertServes(t, place);
  });

  // Each takes seconds, so the suite tries some of them: different ones each day, a twelfth in
  // .ci/run.
  for (const name of todays(names, 48)) {
    const others = [...withDependents(name)].filter((other) => other !== name);
    const together = others.length > 0 ? `, together with ${others.join(", ")} that import it` : "";
    it(`leaves a program that builds and serves: ${name}${together}`, async (t) => {
      const place = copyWithout(withDependents(name));
      assertNoTypeErrors(place);
      await assertServes(t, place);
    });
  }
});
