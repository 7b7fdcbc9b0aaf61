// The response parser compared with Node's own (llhttp): for every response of the corpus and its
// mutations, both read the same or both reject. The list below says where and why the client is
// stricter. However the bytes are split, the client reads the same.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LONG } from "../../../support/long.ts";
import { createRandom } from "../../../support/random.ts";
import {
  LONG_RESPONSES,
  readByClient,
  readByNode,
  RESPONSES,
  type Reading,
} from "../../../support/responses.ts";

const HEAD = "a malformed status line or header";
/**
 * What the client rejects and Node may accept: the client's reason, the explanation, and a pattern
 * of the bytes. Absent: the reason is precise enough.
 */
const STRICTER: readonly [reason: string, why: string, bytes?: RegExp][] = [
  [
    HEAD,
    "only HTTP/1.0 and 1.1 were spoken to; other versions frame messages otherwise",
    /(?:^|\r\n)(?:HTTP\/(?!1\.[01] )|RTSP|ICE)/,
  ],
  [HEAD, "a status below 100 has no meaning (RFC 9110, section 15)", /HTTP\/1\.[01] 0/],
  [
    HEAD,
    "RFC 9112, section 2.2 forgives empty lines before requests, not before responses",
    /(?:^|\r\n\r\n)[\r\n]/,
  ],
  [
    "an answer that is not HTTP/1",
    "the two cases above, noticed before the head is complete",
    /^(?:[\r\n]|HTTP\/(?!1\.)|RTSP|ICE)/,
  ],
  [
    HEAD,
    "no reason phrase has control characters (section 4)",
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern is about them
    /HTTP\/1\.[01] \d\d\d [^\r\n]*[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/,
  ],
  ...[HEAD, "a line that ends without CR", "incomplete"].map((reason): [string, string, RegExp] => [
    reason,
    "the llhttp of Node 20 takes two CR in a status line for the end of the head",
    /HTTP\/1\.[01] \d\d\d[^\n]*\r(?!\n)/,
  ]),
  [
    "a malformed Content-Length",
    "longer numbers could not be counted exactly",
    /content-length: *\d{16}/i,
  ],
  [
    "a tab in Content-Length or Transfer-Encoding",
    "llhttp takes a tab before the value for a blank and one behind it for a part of the value",
  ],
  [
    "a transfer coding",
    "llhttp reads on until the connection ends, or leaves gzip in the body: nothing but chunked was asked for",
  ],
  [
    "Transfer-Encoding in HTTP/1.0 (section 6.1)",
    "the standard says to treat it as faulty framing",
  ],
  [
    "a malformed chunk size",
    "longer sizes are none of a real reply; extensions follow the grammar of section 7.1.1, without escapes and Latin-1 in quoted strings",
    /(?:\r\n|\d)[0-9a-f]{13}|;[^\r]*(?:["\\;=]|\r)/i,
  ],
  [
    "a line that is too long",
    "extensions and trailer fields are thrown away, so they have no need to be long",
  ],
  ["too many trailer fields", "they are thrown away too, but have to be read"],
  [
    "a malformed trailer",
    "what frames a body cannot come after it (RFC 9110, section 6.5.1)",
    /\r\n(?:content-length|transfer-encoding):/i,
  ],
  [
    "a change of the protocol",
    "nobody asked for one; llhttp takes a 101 without Upgrade for a final response",
  ],
  [
    "an interim response that is the last one",
    "what only resembles the word close ends a connection too, which does no harm elsewhere",
  ],
  ["a head of more than 65536 bytes", "Node's bound is set higher for this test"],
];

const isKnown = (refused: string, text: string): boolean =>
  STRICTER.some(([reason, , bytes]) => reason === refused && (bytes?.test(text) ?? true));

const shown = (text: string): string => JSON.stringify(text.slice(0, 2_000));

/**
 * Asserts that both parsers read the same, and that the client never keeps a connection that Node
 * closes.
 */
function compare(text: string, node: Reading, client: Reading): void {
  if ("refused" in client) {
    const mayRefuse = "refused" in node || isKnown(client.refused, text);
    assert.ok(mayRefuse, `only the client refuses (${client.refused}): ${shown(text)}`);
    return;
  }
  if ("refused" in node) assert.fail(`only Node refuses (${node.refused}): ${shown(text)}`);
  assert.equal(client.status, node.status, shown(text));
  assert.equal(client.body, node.body, shown(text));
  assert.ok(node.kept || !client.kept, `only the client keeps the connection: ${shown(text)}`);
  for (const name of node.names)
    assert.equal(client.header(name), node.header(name), `${name} of ${shown(text)}`);
}

/** A reading in a comparable form, without the reason for a rejection. */
const summary = (reading: Reading, names: readonly string[]): unknown =>
  "refused" in reading
    ? "refused"
    : [reading.status, reading.body, reading.kept, names.map(reading.header)];

const bytesOf = (text: string): Buffer => Buffer.from(text, "latin1");
const NAMES = ["x", "content-type", "content-length", "transfer-encoding", "connection"];

const summaryOf = (pieces: Buffer[]): unknown => summary(readByClient(pieces), NAMES);

/** The parser moves bytes within its buffer, so each call gets a copy. */
const inTwo = (text: string, cut: number): Buffer[] =>
  [text.slice(0, cut), text.slice(cut)].filter((part) => part !== "").map(bytesOf);

describe("the response parser, compared with Node's", () => {
  it(`reads ${RESPONSES.length + LONG_RESPONSES.length} responses the same, or rejects them for a stated reason`, async () => {
    for (const text of [...RESPONSES, ...LONG_RESPONSES])
      compare(text, await readByNode(text), readByClient([bytesOf(text)]));
  });

  const cutAnywhere = RESPONSES.filter((_, at) => LONG || at % 4 === 0);
  it(`reads ${cutAnywhere.length} of them the same, split in two at every byte, and byte by byte`, () => {
    for (const text of cutAnywhere) {
      const expected = summaryOf([bytesOf(text)]);
      for (let cut = 1; cut < text.length; cut += 1)
        assert.deepEqual(summaryOf(inTwo(text, cut)), expected, `cut at ${cut}: ${shown(text)}`);
      const read = summaryOf([...text].map(bytesOf));
      assert.deepEqual(read, expected, `byte by byte: ${shown(text)}`);
    }
  });

  it("reads heads of about the largest size the same, split around their ends and the limit", () => {
    for (const text of LONG_RESPONSES) {
      const expected = summaryOf([bytesOf(text)]);
      const end = text.indexOf("\r\n\r\n");
      const cuts = [1, 2, 100, 65_534, 65_535, 65_536, 65_537, end, end + 1, end + 2, end + 3];
      for (const cut of cuts.filter((each) => each < text.length))
        assert.deepEqual(summaryOf(inTwo(text, cut)), expected, `cut at ${cut}`);
    }
  });

  it("is tested for each reason to be stricter", () => {
    const given = [...RESPONSES, ...LONG_RESPONSES, tooLong(), tooMany()].map((text) => {
      const reading = readByClient(inTwo(text, 5));
      return "refused" in reading ? reading.refused : "";
    });
    for (const [reason] of STRICTER) assert.ok(given.includes(reason), reason);
  });
});

const chunked = (rest: string): string =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n${rest}`;
const tooLong = (): string => chunked(`0;a=${"b".repeat(5_000)}\r\n\r\n`);
const tooMany = (): string => chunked(`0\r\n${`X: ${"y".repeat(1_000)}\r\n`.repeat(100)}\r\n`);

const CASES = LONG ? 100_000 : 3_000;
const SPICE = [
  ..."\r\n,\n,\r,\r\n\r\n, ,\t,\0,:,;,=,0,1,5,a,f,x,\x7f,\x80,\xff,\\,-,+,chunked,close".split(","),
  ",",
  '"',
  "Content-Length: 5\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Connection: keep-alive\r\n",
  "HTTP/1.1 200 OK\r\n",
  "HTTP/1.1 100 Continue\r\n\r\n",
];

type Random = ReturnType<typeof createRandom>;

/** The text with one change: bytes removed, added, repeated, or copied from elsewhere. */
function mutated(text: string, { between, pick }: Random): string {
  const start = between(0, text.length);
  const end = Math.min(text.length, start + between(0, 3));
  const other = pick(RESPONSES);
  const from = between(0, other.length);
  const replacements = [
    "",
    pick(SPICE),
    text.slice(start, end).repeat(2),
    text.slice(start, end).toUpperCase(),
    other.slice(from, from + between(1, 20)),
    text.slice(between(0, start), end),
    String.fromCharCode(between(0, 255)),
  ];
  return text.slice(0, start) + pick(replacements) + text.slice(end);
}

/** The text in up to ten pieces. */
function inPieces(text: string, { between }: Random): Buffer[] {
  const pieces: Buffer[] = [];
  for (let start = 0; start < text.length; ) {
    const end = pieces.length === 9 ? text.length : between(start + 1, text.length);
    pieces.push(bytesOf(text.slice(start, end)));
    start = end;
  }
  return pieces;
}

const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000_000);

it(`${CASES} mutated responses, seed ${seed}: the same for Node and the client, in one piece and in several`, async (t) => {
  const random = createRandom(seed);
  let accepted = 0;
  for (let count = 0; count < CASES; count += 1) {
    let text = random.pick(RESPONSES);
    for (let changes = random.between(1, 4); changes > 0; changes -= 1)
      text = mutated(text, random);
    const client = readByClient([bytesOf(text)]);
    compare(text, await readByNode(text), client);
    const cut = readByClient(inPieces(text, random));
    assert.deepEqual(summary(cut, NAMES), summary(client, NAMES), shown(text));
    if (!("refused" in client)) accepted += 1;
  }
  t.diagnostic(`seed ${seed}: ${accepted} of ${CASES} were accepted`);
  assert.ok(accepted > CASES / 20, "mutations leave enough of responses to be accepted");
});
