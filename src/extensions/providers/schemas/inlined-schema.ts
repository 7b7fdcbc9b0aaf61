// Schemas without references, for models that refuse them: what a reference refers to is copied to
// its place.
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { resolved } from "./tool-schema.ts";

/** The most copied values in the schemas of one request: references can multiply what they copy. */
const MAX_VALUES = 50_000;
/** The most nested references. */
const MAX_DEPTH = 10;

type Json = Record<string, unknown>;

/** Returns a function that writes the schemas of one request. */
export function createInliner(): (schema: object | undefined) => Json {
  let copied = 0;

  /**
   * `within`: the targets of the references around this node. A recursive reference, or one beyond
   * a bound, becomes `{}`, which allows any value.
   */
  function inlined(node: unknown, root: Json, within: readonly unknown[]): unknown {
    if (within.length > 0) copied += 1;
    if (typeof node !== "object" || node === null) return node;
    if (Array.isArray(node)) return node.map((each) => inlined(each, root, within));
    const { $ref, ...others } = asObject(node);
    const target = resolved($ref, root);
    if (target !== undefined) {
      const isBeyond = copied > MAX_VALUES || within.length === MAX_DEPTH;
      if (isBeyond || within.includes(target)) return {};
      return inlined({ ...asObject(target), ...others }, root, [...within, target]);
    }
    const members = Object.entries(node).map(([name, member]) => [
      name,
      inlined(member, root, within),
    ]);
    return Object.fromEntries(members);
  }

  return (schema) => {
    const root = asObject(schema);
    const { $defs: _, definitions: __, ...written } = root;
    return asObject(inlined(written, root, []));
  };
}
