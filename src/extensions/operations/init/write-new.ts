// Shared by both forms of `init`: writes a new file, and lists the next steps for the operator.
import { rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { DEFAULT_FILE } from "../../../config/load.ts";

/** Writes a file. Throws an Error for the operator if it exists or cannot be written. */
export async function writeNew(file: string, text: string): Promise<void> {
  try {
    const made = await open(file, "wx");
    try {
      await made.writeFile(text);
    } catch (error) {
      rmSync(file); // it is incomplete, and the next `init` would not overwrite it
      throw error;
    } finally {
      await made.close();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw new Error(`${file} is there already, and init never overwrites: name another --config`);
    throw new Error(`cannot write ${file}: ${code}`);
  }
}

/** The commands to run next. `exports`: the variables that the file names, each as `NAME=...`. */
export function nextStepsText(file: string, exports: readonly string[]): string {
  // For a shell, which would cut a name at a blank.
  const name = /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
  const config = file === DEFAULT_FILE ? "" : ` --config ${name}`;
  const lines = exports.map((text) => `  export ${text}\n`).join("");
  return `Next, with this program's name in front (npm start --, or node chat-gateway.mjs):

${lines}
  check${config}   # is the configuration valid?
  check --live${config}   # does the provider answer?
  serve${config}
`;
}
