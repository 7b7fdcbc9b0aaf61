// GET /openapi.json: the contract as an OpenAPI 3.1 document. The schema of a request is taken from
// the check itself. Extensions that serve further APIs describe them here.
import { requestCheck } from "../../../core/extension/places.ts";
import { moment, type Installed, type Installer } from "../../../core/extension/installer.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import document from "./openapi.json" with { type: "json" };

/** The part that an extension adds to the document: operations, and the schemas that they name. */
export interface Description {
  /** Those in which clients ask for a reply by POST, by path. */
  readonly operations: Readonly<Record<string, Operation>>;
  /** By name. No other extension may have the name. */
  readonly schemas: Readonly<Record<string, object>>;
}

/** The document is made. */
export const descriptions = moment<() => Description>("descriptions");

/** An operation of another API. Limits and errors are those of chat completions. */
interface Operation {
  readonly summary: string;
  /** Where the key may stand, as OpenAPI says it. */
  readonly security: readonly object[];
  /** What a good reply is. */
  readonly reply: string;
  /**
   * The names of its schemas, by those of chat completions. Without one for ChatCompletionChunk it
   * never streams.
   */
  readonly names: Readonly<Record<string, string>>;
}

/** An operation as OpenAPI has it, made of that of chat completions. */
function pathItem({ summary, security, reply, names }: Operation): object {
  const { post } = document.paths["/v1/chat/completions"];
  const text = JSON.stringify(post).replace(
    /(?<=#\/components\/schemas\/)\w+/g,
    (name) => names[name] ?? name,
  );
  const operation = JSON.parse(text) as typeof post;
  const good = operation.responses["200"];
  const { "text/event-stream": _stream, ...onlyWhole } = good.content;
  const content = names["ChatCompletionChunk"] ? good.content : onlyWhole;
  const responses = { ...operation.responses, "200": { ...good, description: reply, content } };
  return { post: { ...operation, summary, security, responses } };
}

/** Sends the document, which is made at the first request. */
export function openapiHandler(installed: Installed): Handler {
  let text: string | undefined;
  return ({ res }) => {
    text ??= documentOf(installed);
    sendJson(res, 200, text);
  };
}

/** The document as text: it never changes while the process runs. */
function documentOf(installed: Installed): string {
  const schemas: Record<string, object> = {
    ChatCompletionRequest: requestCheck(installed).schema,
    ...document.components.schemas,
  };
  const paths: Record<string, object> = { ...document.paths };
  for (const { call } of installed.listeners(descriptions)) {
    const described = call();
    Object.assign(schemas, described.schemas);
    for (const [path, operation] of Object.entries(described.operations))
      paths[path] = pathItem(operation);
  }
  const components = { ...document.components, schemas };
  return JSON.stringify({ ...document, paths, components });
}

export function install(gateway: Installer): void {
  gateway.route("GET", "/openapi.json", ({ installed }) => openapiHandler(installed));
}
