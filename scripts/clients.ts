// The client programs that the manual's page "Connect your client" shows. The page is written from
// these lists by `npm run docs`, and the tests in test/clients run the same lines, with the address
// and the model of a gateway of their own in place of ADDRESS and MODEL.
import { AGENTS } from "./clients/agents.ts";
import { NODE_PROGRAMS } from "./clients/node.ts";
import { PYTHON_PROGRAMS } from "./clients/python.ts";

/** Lines that a reader copies: a file, a program, or commands of a shell. */
export interface ClientBlock {
  /** The language of the Markdown block. Commands of a shell are `text`. */
  readonly language: "text" | "js" | "python" | "toml" | "yaml";
  /** Where the lines belong. Absent: they are typed into a shell, or are the reader's own program. */
  readonly file?: string;
  /** The lines, without the line end of the last. */
  readonly text: string;
}

export interface ClientProgram {
  /** What people call it. */
  readonly name: string;
  /** What is installed to get it. Absent: the name says it. */
  readonly install?: string;
  /** The version that was run. Absent: the latest of the day, if it was run at all. */
  readonly version?: string;
  /** Whether somebody tried the lines by hand. */
  readonly tried?: boolean;
  /** The test that runs the lines. Absent: none does. */
  readonly test?: string;
  readonly blocks: readonly ClientBlock[];
  /** What else its users must know. */
  readonly note?: string;
}

export interface ClientGroup {
  /** The heading of the group. */
  readonly title: string;
  readonly programs: readonly ClientProgram[];
}

/** The address, the model and the variable with the key, as they stand in the lines. */
export const ADDRESS = "http://127.0.0.1:8080";
export const MODEL = "my-model";
export const KEY_VARIABLE = "GATEWAY_KEY";

/** The day on which the programs that no test runs were tried. */
const TRIED_ON = "23 November 2026";

export const CLIENT_GROUPS: readonly ClientGroup[] = [
  { title: "Programs", programs: AGENTS },
  { title: "Libraries for JavaScript", programs: NODE_PROGRAMS },
  { title: "Libraries for Python", programs: PYTHON_PROGRAMS },
];

/** The program of this name. Throws if there is none. */
export function clientProgram(name: string): ClientProgram {
  const found = CLIENT_GROUPS.flatMap(({ programs }) => programs).find(
    (program) => program.name === name,
  );
  if (!found) throw new Error(`there is no client program ${name}`);
  return found;
}

/** The lines of a block, for a gateway at this address that has this model. */
export const linesFor = ({ text }: ClientBlock, address: string, model: string): string =>
  text.replaceAll(ADDRESS, address).replaceAll(MODEL, model);

/** The part of the manual's page that is about the programs. */
export function clientsText(): string {
  return CLIENT_GROUPS.map(({ title, programs }) =>
    [`## ${title}`, ...programs.map(programText)].join("\n\n"),
  ).join("\n\n");
}

function programText(program: ClientProgram): string {
  const { name, note, blocks } = program;
  const parts = blocks.flatMap(({ file, language, text }) => [
    ...(file === undefined ? [] : [`In \`${file}\`:`]),
    `\`\`\`${language}\n${text}\n\`\`\``,
  ]);
  return [`### ${name}`, proofText(program), ...parts, ...(note === undefined ? [] : [note])].join(
    "\n\n",
  );
}

/** How it is known that the lines work. */
function proofText({ install, version, tried, test }: ClientProgram): string {
  const what = install === undefined ? "" : `Install: \`${install}\`. `;
  if (test !== undefined) return `${what}\`${test}\` runs these lines with version ${version}.`;
  if (!tried) return `${what}From its documentation; we have not run it.`;
  const release = version === undefined ? "" : ` with version ${version}`;
  return `${what}We tried it by hand${release} on ${TRIED_ON}; no test runs it.`;
}
