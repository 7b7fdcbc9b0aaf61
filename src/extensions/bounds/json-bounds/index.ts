// Counts the values and the new property names of JSON texts from outside before JSON.parse sees
// them. A parse cannot be interrupted, and its cost depends on more than the length of the text:
// for each new sequence of property names V8 makes a hidden class, which takes at least 2 us and
// much memory, while a value takes 0.02 to 0.3 us. The threat is a text of a few megabytes that
// stops the process for seconds. Measured on Node 20 with 10 MiB each: 1,000,000 new names in
// objects of 100 take 3.0 s and 0.5 GB, one object with 1,000,000 names 0.5 s, 3,500,000 empty
// objects 0.4 s, one long string 0.01 s. Within the bounds below the worst known texts take 0.2 s.
// A normal text repeats its sequences of names: each of 100,000 messages has three values and no
// new sequence.
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";

/** The most new names. A name is new if no earlier object had it after the same other names. */
const MAX_NEW_NAMES = 50_000;
/**
 * How many names after one sequence are remembered (V8 keeps 1,536). Further names count as new
 * each time.
 */
const MAX_SIBLINGS = 1_000;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Random, so that a client cannot choose different names with the same hash. */
const FACTOR = Math.floor(Math.random() * 2 ** 31) * 2 + 1;

/**
 * The hash of a sequence of names that is longer by one name. The name is in `text`, from `start`
 * to the quote at `end`.
 */
function continued(sequence: number, text: string, start: number, end: number): number {
  let hash = sequence;
  for (let at = start; at <= end; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), FACTOR);
    hash ^= hash >>> 15;
  }
  return hash;
}

export function install(gateway: Installer): void {
  gateway.fill(slots.jsonExcess, (text, maxValues) => createJsonCounter(maxValues).add(text));
}

export interface JsonCounter {
  /**
   * Counts one more text. Returns which bound all texts together exceed. Undefined: none. The
   * caller does not parse a text that exceeds a bound, so its values are not counted, and a smaller
   * text may still pass.
   */
  add(text: string): string | undefined;
}

/**
 * Counts all texts that are to be parsed for one request. Invalid JSON counts like any other text:
 * JSON.parse rejects it.
 */
export function createJsonCounter(maxValues: number, maxNewNames = MAX_NEW_NAMES): JsonCounter {
  /**
   * For each known sequence of names, by its hash: how many known sequences are longer by one name.
   */
  const continuations = new Map<number, number>([[0, 0]]);
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
    const outer: number[] = []; // the sequences of the open objects around the innermost one
    let sequence = 0; // the sequence of the innermost object
    let start = 0; // the start of the latest string, which is a name if a colon follows
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
          sequence = continued(before, text, start, end);
          start = end; // a second colon must not cause another pass over a long name
          countName(before, sequence);
          if (newNames > maxNewNames) return `more than ${maxNewNames} different property names`;
          break;
        }
        case OPEN_OBJECT:
        case OPEN_ARRAY:
          outer.push(sequence);
          sequence = 0;
          values += 1;
          break;
        case CLOSE_OBJECT:
        case CLOSE_ARRAY:
          sequence = outer.pop() ?? 0;
          break;
        case COMMA:
          values += 1;
      }
      if (values > maxValues) return `more than ${maxValues} values`;
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

/**
 * The index of the quote that ends the string whose first character is at `from`. The text's length
 * if there is none. Most of a large text is strings, so the quotes are searched for natively.
 */
function endOfString(text: string, from: number): number {
  let quote = text.indexOf('"', from);
  while (quote !== -1 && isEscaped(text, from, quote)) quote = text.indexOf('"', quote + 1);
  return quote === -1 ? text.length : quote;
}

/** Whether an odd number of backslashes stands before a quote in a string that begins at `from`. */
function isEscaped(text: string, from: number, quote: number): boolean {
  let at = quote;
  while (at > from && text.charCodeAt(at - 1) === BACKSLASH) at -= 1;
  return (quote - at) % 2 === 1;
}
