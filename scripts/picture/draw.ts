// Draws a recording as an animated terminal, in SVG without a script. Whoever cannot or does not
// want to see the animation sees its last state.
import {
  ALIAS,
  DYING,
  QUESTION,
  REQUEST_ID,
  STEADY,
  type Receipt,
  type Recording,
} from "./record.ts";

/** Pixels. The width of a character is forced, so that any monospaced font fits. */
const CHAR = 7.8;
const LINE = 20;
const MARGIN = 22;
const TOP = 54;
const COLUMNS = 106;
const WIDTH = MARGIN * 2 + COLUMNS * CHAR;

/** Seconds. */
const PER_WORD = 0.11;
const PAUSE = 1.1;
const PER_LINE = 0.16;

const STYLE = `
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6deeb; white-space: pre; }
  .prompt { fill: #7f8ea3; } .first { fill: #ffcb6b; } .second { fill: #7fdbca; } .died { fill: #ff7b72; font-weight: bold; } .cost { fill: #fff; font-weight: bold; }
  .show { animation: show 0.01s linear backwards; }
  @keyframes show { from { opacity: 0; } to { opacity: 1; } }
  @media (prefers-reduced-motion: reduce) { .show { animation: none; } }`;

/** The client's key, as the shell has it. */
const SENT = '-H "$KEY"';

/** Where the next text stands, and when it appears. */
interface Pen {
  column: number;
  line: number;
  seconds: number;
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function textAt({ column, line, seconds }: Pen, text: string, kind: string): string {
  const x = (MARGIN + column * CHAR).toFixed(1);
  const y = TOP + line * LINE;
  const delay = seconds > 0 ? ` style="animation-delay:${seconds.toFixed(2)}s"` : "";
  const width = (text.length * CHAR).toFixed(1);
  return `  <text x="${x}" y="${y}" textLength="${width}" class="show ${kind}"${delay}>${escaped(text)}</text>`;
}

/** Puts a line of its own at the pen. */
function lineAt(pen: Pen, text: string, kind = ""): string {
  const drawn = textAt({ ...pen, column: 0 }, text, kind);
  pen.line += 1;
  pen.column = 0;
  return drawn;
}

/** Words one after the other, in lines. */
function wordsAt(pen: Pen, words: readonly string[], kind: string): string[] {
  return words.map((word) => {
    const isFull = pen.column + word.length > COLUMNS;
    if (isFull) Object.assign(pen, { line: pen.line + 1, column: 0 });
    const shown = isFull ? word.trimStart() : word;
    const blanks = shown.length - shown.trimStart().length;
    pen.column += blanks;
    const drawn = textAt(pen, shown.trimStart(), kind);
    pen.column += shown.length - blanks;
    pen.seconds += PER_WORD;
    return drawn;
  });
}

function receiptLines({ status, model, cost, currency, attempts }: Receipt): [string, string][] {
  const attempt = ({ model: name, outcome, cost: share }: Receipt["attempts"][number]) =>
    `    { "model": "${name}", "outcome": "${outcome}", …, "cost": "${share}" }`;
  const [broken = "", finished = ""] = attempts.map(attempt);
  return [
    [`{ "request_id": "${REQUEST_ID}", "status": "${status}", "model": "${model}", …`, ""],
    [`  "attempts": [`, ""],
    [`${broken},`, "first"],
    [finished, "second"],
    ["  ],", ""],
    [`  "cost": "${cost}", "currency": "${currency}" }`, "cost"],
  ];
}

/** The picture. Throws if the recording is not that of a stream that two models wrote. */
export function draw({ pieces, end, receipt }: Recording): string {
  if (receipt.attempts.length !== 2) throw new Error("the picture is about two attempts");
  const wordsOf = (name: string) =>
    pieces.filter(({ model }) => model === name).map(({ text }) => text);
  const pen: Pen = { column: 0, line: 0, seconds: 0 };
  const body = [
    lineAt(
      pen,
      `$ curl -N http://127.0.0.1:8080/v1/chat/completions ${SENT} -H 'X-Request-Id: ${REQUEST_ID}' \\`,
      "prompt",
    ),
    lineAt(pen, `    -d '{ "model": "${ALIAS}", "stream": true, … "${QUESTION}" }'`, "prompt"),
  ];
  pen.line += 1.4; // the line above the answer is for what happens to it
  pen.seconds = PAUSE;
  body.push(...wordsAt(pen, wordsOf(DYING), "first"));
  const died = `${DYING} dies here ▼`;
  const above = { line: pen.line - 1, column: pen.column - died.length, seconds: pen.seconds };
  body.push(textAt(above, died, "died"));
  pen.seconds += PAUSE;
  const continues = { line: above.line, column: pen.column + 1, seconds: pen.seconds };
  body.push(textAt(continues, `${STEADY} continues`, "second"));
  body.push(...wordsAt(pen, wordsOf(STEADY), "second"));
  pen.line += 1;
  body.push(lineAt(pen, end, "prompt"));
  pen.line += 0.4;
  pen.seconds += PAUSE;
  body.push(
    lineAt(
      pen,
      `$ curl http://127.0.0.1:8080/v1/requests/${REQUEST_ID} ${SENT} | jq '.data[0]'`,
      "prompt",
    ),
  );
  pen.seconds += PAUSE / 2;
  for (const [text, kind] of receiptLines(receipt)) {
    body.push(lineAt(pen, text, kind));
    pen.seconds += PER_LINE;
  }
  return framed(body, TOP + pen.line * LINE);
}

/** The window around the text. */
function framed(body: readonly string[], height: number): string {
  const title =
    "A provider dies in the middle of a stream, another one continues it, and the receipt shows both attempts and the cost";
  const dots = ["#ff5f56", "#ffbd2e", "#27c93f"].map(
    (fill, at) => `  <circle cx="${MARGIN + 6 + at * 20}" cy="20" r="6" fill="${fill}"/>`,
  );
  const size = `${WIDTH.toFixed(0)} ${height.toFixed(0)}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size}" role="img" aria-label="${title}">`,
    `  <style>${STYLE}\n  </style>`,
    '  <rect width="100%" height="100%" rx="10" fill="#0b1521"/>',
    ...dots,
    ...body,
    "</svg>\n",
  ].join("\n");
}
