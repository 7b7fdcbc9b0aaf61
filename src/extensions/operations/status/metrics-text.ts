// Reads the text of GET /metrics: the samples of Prometheus's format.

/** One line. */
export interface Sample {
  /** Of the family, with `_bucket`, `_sum` or `_count` where the type has these. */
  readonly name: string;
  /** By their names. Empty: it has none. */
  readonly labels: Readonly<Record<string, string>>;
  /** Infinity for `+Inf`. */
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** The samples of a text. Comments and lines that are no samples are left out. */
export function samplesIn(text: string): readonly Sample[] {
  return text.split("\n").flatMap((line) => {
    const [, name, labels = "", value] = LINE.exec(line) ?? [];
    if (name === undefined) return [];
    return [{ name, labels: labelsIn(labels), value: numberOf(value!) }];
  });
}

const labelsIn = (text: string): Sample["labels"] =>
  Object.fromEntries(
    [...text.matchAll(LABEL)].map(([, name, value]) => [name!, unescaped(value!)] as const),
  );

const unescaped = (value: string): string =>
  value.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));

export const numberOf = (text: string): number => (text === "+Inf" ? Infinity : Number(text));
