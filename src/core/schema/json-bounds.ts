// Bounds on JSON texts from outside, counted before JSON.parse sees them. A parse cannot be interrupted, and what it costs depends on
// what the text holds, not only on its length: for every new sequence of property names V8 makes a hidden class, which takes 2 us and
// more and much memory, while a value takes 0.02 to 0.3 us. The threat is a text of a few megabytes that stops the process for seconds.
// Measured on Node 20 with 10 MiB each: 1,000,000 new names in objects of 100 take 3.0 s and 0.5 GB, one object with 1,000,000 names
// 0.5 s, 3,500,000 empty objects 0.4 s, one long string 0.01 s. Within the bounds below the worst texts that were found take 0.2 s.
// An honest text repeats its sequences of names: each of 100,000 messages has three values and nothing new.

/** Values of a client's body: its commas and its opening brackets and braces, outside of strings. 100,000 messages of a role and a text
 * have as many. What is done with them after the parse takes three times as long as the parse. */
export const MAX_BODY_VALUES = 300_000;
/** Values of a provider's reply or event: log probabilities of 20 tokens at each of 4,000 positions have as many. */
export const MAX_REPLY_VALUES = 600_000;
/** Names of properties that continue an object in a way that no object before it did. */
export const MAX_NEW_NAMES = 50_000;
/** So many continuations of one beginning are remembered (V8 keeps 1,536); any other one is new each time that it comes. */
const MAX_SIBLINGS = 1_000;
/** A shorter text cannot exceed either bound: a value takes a character, a name six with its quotes, colon, value and comma. */
const ALWAYS_WITHIN = 256 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The factor of the hash is secret, or a client could choose names that count as one. */
const FACTOR = Math.floor(Math.random() * 2 ** 31) * 2 + 1;
function mix(hash: number, code: number): number {
  const product = Math.imul(hash ^ code, FACTOR);
  return product ^ (product >>> 15);
}

export interface JsonCounter {
  /** Counts one more text. Returns undefined, or what is too much in this text and those before it together. The values of such a text
   * count no more, as it is not to be parsed, so a smaller one may still pass. */
  add(text: string): string | undefined;
}

/** Counts the texts that are to be parsed for one request. Invalid JSON is counted like any other text: JSON.parse refuses it. */
export function createJsonCounter(maxValues: number, maxNewNames = MAX_NEW_NAMES): JsonCounter {
  /** Of each known sequence of names, by its hash: how many known sequences are longer than it by one name. */
  const continuations = new Map<number, number>([[0, 0]]);
  const tooManyValues = `more than ${maxValues} values`;
  const tooManyNames = `more than ${maxNewNames} different property names`;
  let values = 0;
  let newNames = 0;

  function countName(before: number, sequence: number): void {
    if (continuations.has(sequence)) return;
    newNames += 1;
    const siblings = continuations.get(before) ?? MAX_SIBLINGS;
    if (siblings >= MAX_SIBLINGS) return;
    continuations.set(before, siblings + 1);
    continuations.set(sequence, 0);
  }

  function excessIn(text: string): string | undefined {
    const around: number[] = []; // the sequences of the objects that are open, without the innermost one's
    let sequence = 0;
    let start = 0; // of the latest string, which is a name if a colon follows
    let end = 0;
    for (let at = 0; at < text.length; at += 1) {
      switch (text.charCodeAt(at)) {
        case QUOTE:
          start = at + 1;
          end = endOfString(text, start);
          at = end;
          break;
        case COLON: {
          const before = sequence;
          for (let i = start; i < end; i += 1) sequence = mix(sequence, text.charCodeAt(i));
          sequence = mix(sequence, QUOTE);
          start = end; // a colon too many must not buy another pass over a long name
          countName(before, sequence);
          if (newNames > maxNewNames) return tooManyNames;
          break;
        }
        case OPEN_OBJECT:
        case OPEN_ARRAY:
          around.push(sequence);
          sequence = 0;
          values += 1;
          if (values > maxValues) return tooManyValues;
          break;
        case CLOSE_OBJECT:
        case CLOSE_ARRAY:
          sequence = around.pop() ?? 0;
          break;
        case COMMA:
          values += 1;
          if (values > maxValues) return tooManyValues;
      }
    }
    return undefined;
  }

  return {
    add(text) {
      const before = values;
      const excess = excessIn(text);
      if (excess !== undefined) values = before; // its names are remembered, so they stay counted
      return excess;
    },
  };
}

/** The place of the quote that ends the string whose first character is at `from`; the end of the text if there is none. */
function endOfString(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}

/** Undefined, or what is too much in a text for JSON.parse. */
export const jsonExcess = (text: string, maxValues: number): string | undefined =>
  text.length <= ALWAYS_WITHIN ? undefined : createJsonCounter(maxValues).add(text);
