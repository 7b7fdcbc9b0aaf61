// The parameters of a tool for Nova, which refuses any member at the top of a schema other than
// type, properties and required. So the definitions in `$defs` are copied to where they are used.
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { objectSchema, resolved } from "../turns/index.ts";

/** The most values in the schemas of one request: references can multiply what they refer to. */
const MAX_VALUES = 50_000;
/** The most nested references. */
const MAX_DEPTH = 10;

type Json = Record<string, unknown>;

/** Returns a function that writes the schemas of one request. */
export function createNovaSchemas(): (parameters: object | undefined) => Json {
  let values = 0;

  /**
   * `within`: the targets of the references around this node. A recursive reference, or a node
   * beyond a bound, becomes `{}`, which allows any value.
   */
  function withoutReferences(node: unknown, root: Json, within: readonly unknown[]): unknown {
    values += 1;
    if (typeof node !== "object" || node === null) return node;
    if (values > MAX_VALUES || within.length > MAX_DEPTH) return {};
    if (Array.isArray(node)) return node.map((each) => withoutReferences(each, root, within));
    const { $ref, ...others } = asObject(node);
    const target = resolved($ref, root);
    if (within.includes(target)) return {};
    if (target !== undefined)
      return withoutReferences({ ...asObject(target), ...others }, root, [...within, target]);
    const members = Object.entries(node).map(([name, member]) => [
      name,
      withoutReferences(member, root, within),
    ]);
    return Object.fromEntries(members);
  }

  return (parameters = {}) => {
    const root = asObject(parameters);
    const { $defs: _, definitions: __, ...written } = root;
    const { properties, required } = objectSchema(asObject(withoutReferences(written, root, [])));
    return { type: "object", properties, required };
  };
}
