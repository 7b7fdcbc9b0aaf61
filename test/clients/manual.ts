// The client programs of the manual's page "Connect your client", read from the page itself, so
// that the tests run what a reader copies.

import { readFileSync } from "node:fs";

export type ClientProgram = ReturnType<typeof programIn>;
export type ClientBlock = ClientProgram["blocks"][number];

/** The address and the variable with the key, as they stand in the lines. */
export const ADDRESS = "http://127.0.0.1:8080";
export const KEY_VARIABLE = "GATEWAY_KEY";

export const CLIENT_PROGRAMS = readFileSync("src/manual/clients.md", "utf8")
  .split(/^### /m)
  .slice(1)
  .map(programIn);

function programIn(section: string) {
  const proof = /^`(\S+)` runs these lines with version (\S+)\.$/m;
  // The test that runs the lines, and the version it runs. Absent: the lines were tried by hand.
  const [, test, version] = proof.exec(section.replace(/^Install: `.*?`\. /m, "")) ?? [];
  const blocks = section.matchAll(/(?:In `(.*)`:\n\n)?^```(\w+)\n([\s\S]*?)\n```$/gm);
  return {
    /** The heading of its section. */
    name: section.slice(0, section.indexOf("\n")),
    /** The command that installs it; empty where the name says it. */
    install: /^Install: `(.*?)`\./m.exec(section)?.[1] ?? "",
    test,
    version,
    /** Lines that a reader copies. Without `file`: for a shell, or the reader's own program. */
    blocks: [...blocks].map(([, file, language = "", text = ""]) => ({ file, language, text })),
  };
}

/** The program of this name. Throws if there is none. */
export function clientProgram(name: string): ClientProgram {
  const found = CLIENT_PROGRAMS.find((program) => program.name === name);
  if (!found) throw new Error(`the manual has no client program ${name}`);
  return found;
}

/** The lines of a block, for a gateway at this address that has this model. */
export const linesFor = ({ text }: Pick<ClientBlock, "text">, address: string, model: string) =>
  text.replaceAll(ADDRESS, address).replaceAll("my-model", model);
