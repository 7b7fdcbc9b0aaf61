// The programs that run in the world, each bundled by esbuild into one script: the gateway from its
// sources, perhaps with a bug planted in them, and the actors.

import { readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { ONE_FILE } from "../build.ts";
import { type Bundle, createBundle } from "./process.ts";

/** A change of one source. */
export interface Change {
  /** Relative to src: `core/accounts/limiter.ts`. */
  readonly file: string;
  /** Stands in the file once. */
  readonly find: string;
  readonly replace: string;
}

/** From the working directory: this script may have been compiled, and the sources have not. */
const SRC = resolve("src");
const ACTORS = resolve("scripts/simulate/actors.ts");

/** Throws if the place of a change is not there, or not alone. */
function changed(text: string, { file, find, replace }: Change): string {
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`src/${file} has ${parts.length - 1} times: ${find}`);
  return parts.join(replace);
}

const changing = (changes: readonly Change[]): Plugin => ({
  name: "changes",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
      const file = relative(SRC, path).replaceAll("\\", "/");
      const own = changes.filter((change) => change.file === file);
      if (own.length === 0) return undefined;
      return { contents: own.reduce(changed, readFileSync(path, "utf8")), loader: "ts" };
    });
  },
});

async function bundle(entry: string, changes: readonly Change[]): Promise<Bundle> {
  const { outputFiles } = await build({
    ...ONE_FILE,
    format: "cjs",
    entryPoints: [entry],
    plugins: [changing(changes)],
    write: false,
    logOverride: { "empty-import-meta": "silent" },
  });
  return createBundle(outputFiles[0]!.text.replace(/^#!.*/, ""), relative("", entry));
}

/** The gateway. `changes`: bugs that are planted. */
export const bundleGateway = (changes: readonly Change[] = []): Promise<Bundle> =>
  bundle(join(SRC, "main.ts"), changes);

/** The clients and the provider. */
export const bundleActors = (): Promise<Bundle> => bundle(ACTORS, []);
